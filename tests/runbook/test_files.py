"""Rule U4: a runbook whose people are in a list."""

from typing import Any

import jsonschema
import pytest

from matoolkit.runbook.query import with_bracketed_names
from matoolkit.runbook.schema import json_schema

from .documents import codes, findings, good

JOINED = "WITH p AS (SELECT * FROM rows) SELECT Id, [E Mail] AS Upn, T, Aliases FROM p JOIN Rows r USING (Id)"
OUTSIDE = ["../people.csv", "/etc/people.csv", "a/../b.csv", "C:\\people.xlsx", "a\\b.csv", "./a.csv", "a//b.csv"]


def listed(**changes: Any) -> dict[str, Any]:
    document = good()
    source = document["data_source"] | {"type": "file", "file": "people.xlsx", "connection": None}
    source |= {"query": "SELECT Id, Upn, T, Aliases FROM rows"} | changes
    document["data_source"] = {key: value for key, value in source.items() if value is not None}
    return document


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"sheet": "Wave 1"},
        {"file": "hr/2026/people.csv"},
        {"file": "People of Contoso.XLSX"},
        {"query": JOINED},
    ],
)
def test_u4_a_list_is_a_source(changes: dict[str, Any]) -> None:
    document = listed(**changes)
    assert codes(document) == []
    jsonschema.validate(document, json_schema())


@pytest.mark.parametrize("name", [*OUTSIDE, "people.xls", "people"])
def test_u4_a_name_that_leaves_the_folder_or_cannot_be_read_is_an_error(name: str) -> None:
    (found,) = findings(listed(file=name))
    assert (found.code, found.severity) == ("RB116", "error")
    assert found.line == 10
    assert found.hint


@pytest.mark.parametrize(("kind", "missing"), [("file", "file"), ("sql", "connection"), ("dataverse", "connection")])
def test_r4_a_source_says_where_it_is(kind: str, missing: str) -> None:
    document = listed(type=kind, file=None)
    (found,) = [found for found in findings(document) if found.severity == "error"]
    assert (found.code, found.message) == ("RB102", f"'data_source' has no '{missing}'")
    with pytest.raises(jsonschema.ValidationError, match=f"'{missing}' is a required property"):
        jsonschema.validate(document, json_schema())


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"connection": "SOURCE"}, "connection"),
        ({"warehouse_id": "WAREHOUSE"}, "warehouse_id"),
        ({"file": "people.csv", "sheet": "Wave 1"}, "sheet"),
        ({"type": "sql", "connection": "SOURCE"}, "file"),
        ({"type": "sql", "connection": "SOURCE", "file": None, "sheet": "Wave 1"}, "sheet"),
    ],
)
def test_u4_keys_of_other_sources_have_no_effect(changes: dict[str, Any], key: str) -> None:
    (found,) = findings(listed(**changes))
    assert found.code == "RB310"
    assert f"'{key}' has no effect" in found.message


def test_u4_a_list_has_one_table() -> None:
    (found,) = findings(listed(query="SELECT Id, Upn, T, Aliases FROM people"))
    assert (found.code, found.message, found.hint) == ("RB219", "a file has no table 'people'", "write FROM rows")


def test_r10_the_columns_of_a_list_are_known_if_the_query_names_them() -> None:
    assert codes(listed(query="SELECT Id, T, Aliases FROM rows")) == ["RB304"]
    assert codes(listed(query="SELECT * FROM rows")) == []


@pytest.mark.parametrize(
    ("query", "written"),
    [
        ('SELECT "Mail Address" FROM rows', "SELECT [Mail Address] FROM rows"),
        ('SELECT \'"x"\' FROM rows -- "y"', 'SELECT \'"x"\' FROM rows -- "y"'),
        ('SELECT "a""b", "a]b" FROM rows', 'SELECT "a""b", "a]b" FROM rows'),
    ],
)
def test_u4_names_in_quotes_are_names(query: str, written: str) -> None:
    assert with_bracketed_names(query) == written
