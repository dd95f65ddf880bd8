"""The rows that retried members take: of the last reading, of the source as it is now, or of a file (rule O14)."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

from matoolkit.admin.csvfiles import read_csv
from matoolkit.admin.queries import existing_batch
from matoolkit.admin.uploads import data_of, keyed_pieces
from matoolkit.domain.cells import json_text
from matoolkit.domain.keys import folded
from matoolkit.domain.retrying import DataChoice, LeftOutBecause
from matoolkit.domain.rows import RowReader
from matoolkit.errors import NotReadYet, WrongDataChoice
from matoolkit.ports import Source
from matoolkit.runbook.model import DataSource
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow
from matoolkit.store.datatables import current_rows_of
from matoolkit.store.failures import members_that_failed
from matoolkit.store.narrow_members import narrow_members
from matoolkit.store.runbooks import active_runbook, last_read, runbooks_by_id
from matoolkit.store.setaside import keys_set_aside


@dataclass(frozen=True, slots=True)
class NewRow:
    """A row that a member takes; one of a file has no time."""

    batch_time: datetime | None
    data_json: str
    data_hash: str


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows by their folded keys, where they come from, when they were read, and whose were set aside."""

    choice: DataChoice
    rows: Mapping[str, NewRow]
    set_aside: Collection[str] = ()
    read_at: datetime | None = None

    def why_not(self, fold: str, start: datetime | None) -> LeftOutBecause | None:
        """Say why a member of a batch with this start cannot take its row, if it cannot."""
        if fold in self.set_aside:
            return LeftOutBecause.SET_ASIDE
        row = self.rows.get(fold)
        if row is None:
            return LeftOutBecause.NO_ROW
        # The rows of an immediate runbook and of a file have no time.
        return LeftOutBecause.ANOTHER_TIME if row.batch_time not in (None, start) else None


def rows_to_take(
    tx: Transaction, batch: BatchRow, choice: DataChoice | None, given: Rows | None, folds: Collection[str]
) -> Rows | None:
    """Return the rows that members take, or nothing if they keep what they have."""
    if given is not None:
        if batch.is_manual is not (given.choice is DataChoice.FILE):
            raise WrongDataChoice(batch.id, is_manual=batch.is_manual)
        return given
    if choice is DataChoice.KEPT or (batch.is_manual and choice is None):
        return None
    if batch.is_manual:
        raise WrongDataChoice(batch.id, is_manual=True)
    return _rows_of_last_reading(tx, batch, folds)


def rows_in_source(
    store: Store, open_source: Callable[[DataSource], Source], batch_id: int, now: Callable[[], datetime]
) -> Rows:
    """Read the rows of a batch's failed members from its source, outside of any transaction."""
    with store.reading() as tx:
        batch = existing_batch(tx, batch_id)
        version = active_runbook(tx, batch.runbook_name) or runbooks_by_id(tx, [batch.runbook_id])[0]
        failed = narrow_members(tx, members_that_failed(tx, batch_id))
    if batch.is_manual:
        raise WrongDataChoice(batch_id, is_manual=True)
    read_at, description = now(), parse_runbook(version.yaml_content).data_source
    reader = RowReader(description, only={folded(member.member_key) for member in failed})
    for piece in open_source(description).pieces(description.query):
        reader.take(piece.columns, piece.rows)
    reading = reader.reading()
    rows = {
        fold: NewRow(one.batch_time, reading.data_of(one).decode(), one.fingerprint.hex())
        for fold, one in reading.candidates.items()
    }
    return Rows(DataChoice.REFRESHED, rows, reading.set_aside_keys, read_at)


def rows_in_file(store: Store, batch_id: int, file: BinaryIO) -> Rows:
    """Read the rows of a file for members of a manual batch; if anything is wrong with it, all of it is refused."""
    with store.reading() as tx:
        batch = existing_batch(tx, batch_id)
        (version,) = runbooks_by_id(tx, [batch.runbook_id])
    source = parse_runbook(version.yaml_content).data_source
    rows: dict[str, NewRow] = {}
    for piece in keyed_pieces(read_csv(file, source), source.primary_key):
        rows |= {fold: NewRow(None, *data_of(row)) for fold, (_, row) in piece.items()}
    return Rows(DataChoice.FILE, rows)


def _rows_of_last_reading(tx: Transaction, batch: BatchRow, folds: Collection[str]) -> Rows:
    version = last_read(tx, batch.runbook_name)
    if version is None:
        raise NotReadYet(batch.runbook_name)
    rows = {
        fold: NewRow(row.batch_time, json_text(row.data).decode(), row.fingerprint)
        for fold, row in current_rows_of(tx, version.data_table, folds).items()
    }
    return Rows(DataChoice.LAST_READING, rows, keys_set_aside(tx, version.id, folds), version.read_at)
