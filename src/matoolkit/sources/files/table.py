"""The table `rows`: a list in a database of its own, which lasts as long as one query (rule U4)."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from tempfile import gettempdir
from typing import Any

from matoolkit.clock import Clock
from matoolkit.errors import SourceFailed, SpoolFailed, did_you_mean
from matoolkit.ports import Piece
from matoolkit.runbook.query import with_bracketed_names

QUERY_SECONDS = 300
_MOST_LETTERS = 16 * 1024 * 1024
_STEPS_BETWEEN_LOOKS = 100_000
_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})


class RowsTable:
    """A list as a table. It is in a temporary file without a name as soon as it is larger than a few megabytes."""

    def __init__(self) -> None:
        self._columns: Sequence[str] = ()
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_LETTERS)

    def fill(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Put the rows of a list there."""
        self._columns = columns
        with self._told_in_our_words():
            self._database.execute("PRAGMA journal_mode = OFF")
            # Cells keep their types: no column has one. A number in a workbook stays a number, a text a text.
            self._database.execute(f"CREATE TABLE rows ({', '.join(map(_quoted, columns))})")
            self._database.execute("BEGIN")
            marks = ", ".join("?" for _ in columns)
            self._database.executemany(f"INSERT INTO rows VALUES ({marks})", rows)  # noqa: S608 - marks only
            self._database.execute("COMMIT")

    def close(self) -> None:
        """Forget the list."""
        self._database.close()

    def pieces(self, query: str, size: int, clock: Clock) -> Iterator[Piece]:
        """Run a query that can do nothing but read, for a bounded time."""
        ends_at = clock.monotonic() + QUERY_SECONDS
        self._database.set_authorizer(_only_reading)
        self._database.set_progress_handler(lambda: clock.monotonic() > ends_at, _STEPS_BETWEEN_LOOKS)
        with self._told_in_our_words():
            found = self._database.execute(with_bracketed_names(query))
            columns = tuple(column[0] for column in found.description or ())
            yield Piece(columns, found.fetchmany(size))
            while rows := found.fetchmany(size):
                yield Piece(columns, rows)

    @contextmanager
    def _told_in_our_words(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning, UnicodeEncodeError) as fault:
            said = str(fault)
            if "disk" in said:
                raise SpoolFailed(gettempdir(), said) from fault
            raise SourceFailed(f"the query cannot be run on the file: {said}", hint=self._hint(said)) from fault

    def _hint(self, said: str) -> str | None:
        what, _, name = said.partition(": ")
        if what == "no such column":
            known = ", ".join(self._columns[:10])
            return did_you_mean(name.rpartition(".")[2], self._columns) or f"the first row of the file names {known}"
        if what == "no such table":
            return "the file is the table 'rows'"
        if said == "interrupted":
            return f"a query may take {QUERY_SECONDS} seconds"
        return None


def _only_reading(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
