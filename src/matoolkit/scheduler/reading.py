"""Reading a source: rows to candidates, and into the data table of the runbook's version (rules T3, T4, D2).

A row that has not changed costs no write. Rows are committed slice by slice, so that other writers do not wait for
long; after a crash the next tick writes the rest. A slice has few rows if they are wide.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TypeVar

import orjson

from matoolkit.domain.cells import cell_kinds, report_text
from matoolkit.domain.rows import Candidate, KeptRows, Reading, RowReader
from matoolkit.ports import Source
from matoolkit.runbook.model import DataSource
from matoolkit.scheduler.leasing import Confirm
from matoolkit.store import Store
from matoolkit.store.datatables import (
    DataRow,
    DataTable,
    current_keys,
    known_fingerprints,
    mark_gone,
    open_data_table,
    upsert_rows,
)
from matoolkit.store.enrolments import member_fingerprints
from matoolkit.store.runbooks import RunbookRow
from matoolkit.store.setaside import forget_set_aside, keys_set_aside, set_keys_aside

AT_ONCE = 5_000
# The size of a slice's data: writing it takes several times as much memory.
LETTERS_AT_ONCE = 4 * 1024 * 1024

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class SourceReader:
    """Reads the source of a runbook into its data table; `confirm` is called first in every transaction.

    The data of rows that the data table or the members may not have yet goes to `kept`.
    """

    store: Store
    confirm: Confirm
    kept: KeptRows

    def read(self, runbook: RunbookRow, description: DataSource, source: Source, at: datetime) -> Reading:
        """Run the query and return what it returned."""
        with self.store.reading() as tx:
            members = member_fingerprints(tx, runbook.name)
            set_aside = keys_set_aside(tx, runbook.id)
        # Filled below, before the first row is taken: the data table is opened with the columns of the first piece.
        rows: set[bytes] = set()
        reader = RowReader(description, lambda fingerprint: fingerprint in rows and fingerprint in members, self.kept)
        table: DataTable | None = None
        for piece in source.pieces(description.query):
            if table is None:
                table = self._table(runbook, piece.columns)
                # `read_at` is empty after an upgrade, and before the first tick. Then all rows count as new once, so
                # that the kinds of their cells are written (rule O14).
                rows |= set() if runbook.read_at is None else self._known(table)
            reader.take(piece.columns, piece.rows)
        reading = reader.reading()
        if table is not None:
            self._keep(table, reading, rows, at)
            # If `read_at` is empty, so is `rows`, and does not show that some are gone. A new table has none to lose.
            if _lacks_some(reading, rows) or (runbook.read_at is None and not table.is_new):
                self._mark_gone(table, reading, at)
        self._set_aside(runbook, set_aside, reading.set_aside_keys)
        return reading

    def _table(self, runbook: RunbookRow, columns: Sequence[str]) -> DataTable:
        with self.store.transaction() as tx:
            self.confirm(tx)
            return open_data_table(tx, runbook.data_table, columns, may_be_old=runbook.read_at is None)

    def _known(self, table: DataTable) -> set[bytes]:
        with self.store.reading() as tx:
            return known_fingerprints(tx, table)

    def _keep(self, table: DataTable, reading: Reading, known: set[bytes], at: datetime) -> None:
        changed = (
            row for row in reading.candidates.values() if row.kept_at is not None and row.fingerprint not in known
        )
        pairs = ((candidate, reading.data_of(candidate)) for candidate in changed)
        for some in in_slices(pairs, AT_ONCE, letters=lambda pair: len(pair[1])):
            with self.store.transaction() as tx:
                self.confirm(tx)
                rows = [_data_row(candidate, data, table) for candidate, data in some]
                upsert_rows(tx, table, rows, at, is_empty=table.is_new)

    def _mark_gone(self, table: DataTable, reading: Reading, at: datetime) -> None:
        last = 0
        while there := self._current_keys(table, last):
            last = there[-1][0]
            gone = [row_id for row_id, key in there if not reading.is_present(key)]
            if gone:
                with self.store.transaction() as tx:
                    self.confirm(tx)
                    mark_gone(tx, table, gone, at)

    def _set_aside(self, runbook: RunbookRow, before: set[str], now: frozenset[str]) -> None:
        """Let retries know whose rows were set aside (rule O14)."""
        for change, folds in ((set_keys_aside, now - before), (forget_set_aside, before - now)):
            for some in in_slices(sorted(folds), AT_ONCE):
                with self.store.transaction() as tx:
                    self.confirm(tx)
                    change(tx, runbook.id, some)

    def _current_keys(self, table: DataTable, after: int) -> list[tuple[int, str]]:
        with self.store.reading() as tx:
            return current_keys(tx, table, after=after, limit=AT_ONCE)


def in_slices(
    items: Iterable[ItemT], size: int, *, letters: Callable[[ItemT], int] | None = None
) -> Iterator[list[ItemT]]:
    """Cut something long into lists of at most this size; where items have letters, of no more than fit into memory."""
    rest = iter(items)
    if letters is None:
        while some := list(islice(rest, size)):
            yield some
        return
    some, room = [], LETTERS_AT_ONCE
    for item in rest:
        some.append(item)
        room -= letters(item)
        if room <= 0 or len(some) == size:
            yield some
            some, room = [], LETTERS_AT_ONCE
    if some:
        yield some


def _lacks_some(reading: Reading, known: set[bytes]) -> bool:
    return sum(row.fingerprint in known for row in reading.candidates.values()) < len(known)


def _data_row(candidate: Candidate, data: bytes, table: DataTable) -> DataRow:
    cells = orjson.loads(data)
    values = [report_text(cells.get(column)) for column in table.columns]
    kinds = cell_kinds(cells, table.columns)
    return DataRow(candidate.key, candidate.batch_time, candidate.fingerprint, values, kinds)
