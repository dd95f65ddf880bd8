import pytest
from hypothesis import given
from hypothesis import strategies as st

from matoolkit.domain.texts import is_storable, storable, utf16_length

ANYTHING = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("a\0b", "a\N{REPLACEMENT CHARACTER}b"),
        ("a\ud800b", "a\N{REPLACEMENT CHARACTER}b"),
        ("\udfff\ud800", "\N{REPLACEMENT CHARACTER}" * 2),
        ("\ud83d\ude00", "😀"),
        ("Zoë 😀", "Zoë 😀"),
        ("", ""),
    ],
)
def test_what_no_database_stores_is_replaced(text: str, stored: str) -> None:
    assert storable(text) == stored


@given(ANYTHING)
def test_every_text_becomes_one_that_can_be_stored(text: str) -> None:
    stored = storable(text)
    assert is_storable(stored)
    assert is_storable(text) == (stored == text)
    assert "\0" not in stored.encode().decode()


@pytest.mark.parametrize(("text", "length"), [("", 0), ("abc", 3), ("é", 1), ("😀", 2)])
def test_a_character_beyond_the_basic_plane_counts_twice(text: str, length: int) -> None:
    assert utf16_length(text) == length
