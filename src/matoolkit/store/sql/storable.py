"""What is handed to a database, with a replacement character for what none can store.

Without this each would do something else: cut the text at the NUL, refuse the statement, or fail in its driver.
"""

from operator import itemgetter
from typing import Any

from matoolkit.domain.texts import is_storable, storable
from matoolkit.store.dialect.questions import Columns, Rows, is_text


def storable_rows(columns: Columns, rows: Rows) -> Rows:
    """Return rows that can be stored; nearly always those that were given, so that nothing is copied."""
    texts = [place for place, kind in enumerate(columns.values()) if is_text(kind)]
    # A column is looked at as one text, which is quicker than one by one.
    places = [place for place in texts if not is_storable("".join(filter(None, map(itemgetter(place), rows))))]
    if not places:
        return rows
    written = [list(row) for row in rows]
    for row in written:
        for place in places:
            row[place] = storable_value(row[place])
    return written


def storable_value(value: Any) -> Any:
    """Return a value that can be stored; only a text can be one that cannot."""
    return storable(value) if isinstance(value, str) else value
