import pytest
from hypothesis import given
from hypothesis import strategies as st

from matoolkit.domain.keys import MAX_KEY_LENGTH, folded, is_usable_key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Anna@Contoso.com", " anna@contoso.COM\t"),
        ("Straße", "STRASSE"),
        ("É", "é"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
    ],
)
def test_t3_spellings_of_one_key_are_equal(one: str, other: str) -> None:
    assert folded(one) == folded(other)


def test_t3_accents_tell_keys_apart() -> None:
    assert folded("Müller") != folded("Muller")


@given(st.text())
def test_t3_folding_a_folded_key_changes_nothing(key: str) -> None:
    assert folded(folded(key)) == folded(key)


@pytest.mark.parametrize(
    "key", ["", " \t\n", "x" * (MAX_KEY_LENGTH + 1), "ß" * MAX_KEY_LENGTH, "a\0b", "a\ud800b", "😀" * 201]
)
def test_a_key_that_no_index_holds_is_not_usable(key: str) -> None:
    assert not is_usable_key(key)


@pytest.mark.parametrize("key", ["a", "x" * MAX_KEY_LENGTH, "x'; DROP TABLE batches; --", "🧑‍💻", "😀" * 200])
def test_any_other_key_is_usable(key: str) -> None:
    assert is_usable_key(key)
