"""Whether texts come back whole, are compared exactly, and are refused where they are too long."""

from collections.abc import Iterator

from sqlalchemy import UnicodeText, select

from matoolkit.errors import RowConflict
from matoolkit.store.checkup.competing import take, taken, undone
from matoolkit.store.checkup.findings import Checked, fine, told, untried, wrong
from matoolkit.store.sql.transaction import Store

_NAME = "matoolkit db check"
# Longer than the longest text of a limited length, with characters of one, two, three and four bytes.
_LONG = "aé€😀" * 2_000
_TOO_LONG = "x" * 1_000
_COLLATION = "make a new database with the collation Latin1_General_100_BIN2; an old one cannot be changed"


def check_texts(store: Store) -> Iterator[Checked]:
    """Hand texts over, compare them and write them, in transactions that are rolled back."""
    yield from told("text", "long", lambda: _long(store))
    yield from told("text", "names", lambda: _names(store))
    yield from told("text", "too long", lambda: _too_long(store))


def _long(store: Store) -> Iterator[Checked]:
    with undone(store) as tx:
        back = tx.values(select(tx.table_of({"text": UnicodeText()}, [(_LONG,)]).c.text))
    if back == [_LONG]:
        yield fine("text", "long", "comes back whole")
    else:
        yield wrong("text", "long", "does not come back whole", "report it: this database cuts JSON")


def _names(store: Store) -> Iterator[Checked]:
    with undone(store) as tx:
        take(tx, _NAME)
        is_same = taken(tx, _NAME.upper()) > 0
    if is_same:
        yield wrong("text", "names", f"'{_NAME}' and '{_NAME.upper()}' are taken for one", _COLLATION)
    else:
        yield fine("text", "names", "are compared exactly")


def _too_long(store: Store) -> Iterator[Checked]:
    if store.dialect.is_file:
        yield untried("text", "too long", "not tried: texts have no limit in a file")
        return
    try:
        with undone(store) as tx:
            take(tx, _TOO_LONG)
    except RowConflict:
        yield fine("text", "too long", "is refused")
    else:
        yield wrong("text", "too long", "is cut", "report it: ANSI_WARNINGS must be on")
