import pytest
from hypothesis import given
from hypothesis import strategies as st

from matoolkit.domain.texts import storable
from matoolkit.store.datanames import LONGEST_NAME, column_names, data_table_name

RESERVED = ("_row_id", "_member_key")


@pytest.mark.parametrize(
    ("runbook", "table"),
    [
        ("wave", "runbook_wave_v3"),
        ("Wave-A", "runbook_wave_a_v3"),
        ('x"; DROP TABLE batches; --', "runbook_x_drop_table_batches_v3"),
        ("🧑‍💻", "runbook_v3"),
        ("x" * 100, f"runbook_{'x' * 52}_v3"),
    ],
)
def test_d2_the_table_of_a_version_is_named_for_its_runbook(runbook: str, table: str) -> None:
    assert data_table_name(runbook, 3, lambda _: False) == table
    assert len(table) <= LONGEST_NAME


def test_d2_a_taken_name_gets_a_number() -> None:
    taken = {"runbook_wave_a_v1", "runbook_wave_a_2_v1"}
    assert data_table_name("wave-a", 1, taken.__contains__) == "runbook_wave_a_3_v1"


def test_d2_columns_that_would_look_the_same_are_told_apart() -> None:
    chosen = column_names(["Name", "name", "NAME!", "", "🧑‍💻"], {}, RESERVED)
    assert list(chosen.values()) == ["Name", "name_2", "NAME_3", "column", "column_2"]


def test_d2_known_columns_keep_their_names_and_are_not_chosen_again() -> None:
    assert column_names(["a b", "a_b"], {"a b": "a_b"}, RESERVED) == {"a_b": "a_b_2"}


def test_d2_no_query_column_can_take_one_of_ours() -> None:
    assert column_names(["_row_id", "__member_key"], {}, RESERVED) == {
        "_row_id": "row_id",
        "__member_key": "member_key",
    }


@given(st.lists(st.text(max_size=300), max_size=30))
def test_d2_every_name_is_harmless_short_and_different(sources: list[str]) -> None:
    chosen = column_names(sources, {}, RESERVED)
    assert set(chosen) == set(map(storable, sources))
    assert len({name.casefold() for name in chosen.values()}) == len(chosen)
    for name in chosen.values():
        assert 0 < len(name.encode()) <= LONGEST_NAME
        assert all(letter.isalnum() or letter == "_" for letter in name)
        assert not name.startswith("_")
