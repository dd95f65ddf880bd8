"""Rows that are written go into the narrowest temporary table of SQLite that they fit into."""

import pytest
from sqlalchemy import Integer

from matoolkit.store.dialect.sqlite import SQLite


@pytest.mark.parametrize(("columns", "table"), [(2, 4), (4, 4), (5, 12), (12, 12), (13, 40), (40, 40)])
def test_rows_go_into_the_narrowest_table_that_has_room(columns: int, table: int) -> None:
    filling = SQLite().filling({f"column{n}": Integer() for n in range(columns)}, [range(columns)])
    assert filling.fill.startswith(f"INSERT INTO temp.given{table} (c0, c1")


def test_more_columns_than_any_table_has_are_refused() -> None:
    with pytest.raises(ValueError, match="41 columns"):
        SQLite().table_to_fill({f"column{n}": Integer() for n in range(41)})
