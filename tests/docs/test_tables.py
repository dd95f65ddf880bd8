"""docs/reference/tables.md is enough to write a report."""

import re
from pathlib import Path

import pytest
from sqlalchemy import text

from matoolkit.store import open_store, schema
from matoolkit.store.datatables import open_data_table
from matoolkit.store.upgrade import upgrade
from tests.databases import place_of

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "tables.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.split("\n")[0][:40])
def test_the_example_reports_run(query: str) -> None:
    store = open_store("sqlite://")
    upgrade(store)
    with store.reading() as tx:
        assert tx.rows(lambda *row: row, text(query)) == []
    store.close()


def test_there_are_reports_to_run() -> None:
    assert len(QUERIES) >= 5


def test_every_table_and_column_says_what_it_is() -> None:
    assert set(schema.MEANINGS) == set(schema.metadata.tables)
    for table in schema.metadata.sorted_tables:
        assert f"### {table.name}\n" in PAGE
        assert [column.name for column in table.columns if not column.doc] == []


def test_d2_every_column_of_our_own_in_a_data_table_is_explained() -> None:
    store = open_store("sqlite://")
    upgrade(store)
    with store.transaction() as tx:
        table = open_data_table(tx, place_of(store, "runbook_wave_v1"), []).table
    store.close()
    assert [column.name for column in table.columns if f"| `{column.name}` |" not in PAGE] == []
