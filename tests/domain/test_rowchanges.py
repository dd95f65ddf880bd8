"""Rule O14: what is different about a row, and which steps that concerns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matoolkit.domain.cells import cell_kinds, report_text, typed_row
from matoolkit.domain.rowchanges import changed_columns, variables_of
from matoolkit.runbook.model import Step
from matoolkit.runbook.parse import parse_runbook
from matoolkit.runbook.templates import Json
from tests.documents import document

CELLS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    # What no database can store is replaced before a row gets here.
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from("abcdef"), CELLS))
def test_a_row_is_read_back_from_a_report_as_it_was(row: dict[str, Json]) -> None:
    columns = "abcdef"
    texts = [report_text(row.get(column)) for column in columns]
    assert typed_row(columns, texts, cell_kinds(row, columns)) == row
    assert not changed_columns(row, typed_row(columns, texts, cell_kinds(row, columns)))


def test_a_row_of_texts_needs_no_letters_at_all() -> None:
    assert cell_kinds({"a": "x", "b": None, "c": ""}, "abc") == ""
    assert cell_kinds({"a": "x", "b": 1, "c": "y"}, "abc") == "tj"


@pytest.mark.parametrize(
    ("before", "now", "columns"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": "1"}, ["a"]),
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": None}, {}, ["a"]),
        ({"b": 1, "a": [1, 2]}, {"a": [2, 1], "c": 0}, ["a", "b", "c"]),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}, []),
    ],
)
def test_a_column_changes_when_its_value_or_type_does(
    before: dict[str, Json], now: dict[str, Json], columns: list[str]
) -> None:
    assert changed_columns(before, now) == columns


def test_the_variables_of_a_step_are_those_of_its_function_and_its_parameters() -> None:
    step: Step = (
        parse_runbook(document())
        .phases[0]
        .steps[0]
        .model_copy(
            update={"function": "{{Action}}", "params": {"a": ["{{ Name }}", {"b": "x {{_batch_id}} {{city}}"}]}}
        )
    )
    assert variables_of(step) == {"action", "name", "city"}
