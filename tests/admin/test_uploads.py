"""Files of any length: checked as a whole before anything is written, then written part by part (rules O13 and A4)."""

import gc
import io
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

import pytest

from matoolkit.admin.csvfiles import read_csv
from matoolkit.admin.manual import ManualChange, ManualUpload
from matoolkit.admin.uploads import MOST_ROWS_IN_PART, Upload
from matoolkit.bus.sql import SqlBus
from matoolkit.clock import VirtualClock
from matoolkit.errors import InvalidMembers
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store
from matoolkit.store.audit import audit_page
from matoolkit.store.batches import count_batches
from matoolkit.store.enrolments import count_members
from matoolkit.store.runbooks import lock_runbook
from tests.databases import Database
from tests.stage import SOURCE, Stage

PHASES = "phases: [{name: a, offset: T-0, steps: [{name: s, worker_id: w, function: Custom-One}]}]"
DESCRIPTION = parse_runbook(f"name: wave\n{SOURCE}{PHASES}").data_source


class GeneratedFile(io.RawIOBase):
    """A file that is made as it is read: as long as wanted, and in nobody's memory."""

    def __init__(
        self, rows: int, width: int = 20, last: bytes = b"", looking_on: Callable[[], None] = lambda: None
    ) -> None:
        self._made_of = rows, width, last
        self._looking_on = looking_on
        self.seek(0)

    def seek(self, offset: int, whence: int = 0) -> int:
        assert (offset, whence) == (0, 0)
        self._lines = self._made(*self._made_of)
        self._rest = b""
        return 0

    def seekable(self) -> bool:
        return True

    @staticmethod
    def _made(rows: int, width: int, last: bytes) -> Iterator[bytes]:
        yield b"Email,Name,Start\r\n"
        for number in range(rows):
            yield b"user%d@contoso.com,%s,\r\n" % (number, b"n" * width)
        yield last

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._looking_on()
        while len(self._rest) < len(buffer) and (line := next(self._lines, None)) is not None:
            self._rest += line
        taken, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)


def upload(
    store: Store, file: GeneratedFile, *, to: int | None = None, name: str = "wave", at_part: Callable[[], object] = int
) -> ManualChange:
    rows = Upload(read_csv(cast("BinaryIO", file), DESCRIPTION), DESCRIPTION.primary_key)
    filling = ManualUpload(SqlBus(store), rows, by="anna", reason=None, runbook_name=name, batch_id=to)
    done = None
    for part in filling.parts(lambda change: change):
        done = part(store)
        at_part()
    assert done
    return done


@pytest.fixture
def stage(store: Store, clock: VirtualClock) -> Stage:
    stage = Stage(store, clock)
    stage.publish(PHASES)
    return stage


def peak_of(work: Callable[[], object]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a4_a_long_file_takes_the_memory_of_a_piece_and_of_its_keys(stage: Stage) -> None:
    upload(stage.store, GeneratedFile(10))
    small = peak_of(lambda: upload_to_another_runbook(stage, "small", 1_000))
    large = peak_of(lambda: upload_to_another_runbook(stage, "large", 10_000))
    # Nine thousand rows more of two kilobytes each: nearly twenty megabytes if they were kept.
    assert large - small < 5_000_000
    with stage.store.reading() as tx:
        assert [count_members(tx, number) for number in (1, 2, 3)] == [10, 1_000, 10_000]


def upload_to_another_runbook(stage: Stage, name: str, rows: int) -> None:
    stage.publish(PHASES, name)
    upload(stage.store, GeneratedFile(rows, width=2_000), name=name)


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (b"USER7@contoso.com,x,\r\n", "row 3502: 'USER7@contoso.com' is in row 9 too"),
        (b",x,\r\n", "row 3502: 'Email' holds no usable key"),
        (b"a,b\r\n", "row 3502: has 2 cells, the header has 3"),
        (b'"a', "row 3502: unexpected end of data"),
        (b"\xff", "the file is not UTF-8 text; in Excel: Save As, 'CSV UTF-8 (Comma delimited)'"),
    ],
)
def test_a4_nothing_is_kept_of_a_file_whose_last_row_is_bad(stage: Stage, last: bytes, said: str) -> None:
    with pytest.raises(InvalidMembers) as refused:
        upload(stage.store, GeneratedFile(3_500, last=last))
    assert refused.value.problems == (said,)
    batch = upload(stage.store, GeneratedFile(3)).batch.id
    with pytest.raises(InvalidMembers) as refused:
        upload(stage.store, GeneratedFile(3_500, last=last), to=batch)
    assert refused.value.problems == (said,)
    with stage.store.reading() as tx:
        assert (count_batches(tx), count_members(tx, batch)) == (1, 3)
        assert [entry.action for entry in audit_page(tx)] == ["batch.create"]


def test_o13_who_is_in_a_batch_already_is_counted_and_only_the_first_are_named(stage: Stage) -> None:
    batch = upload(stage.store, GeneratedFile(2_500)).batch.id
    done = upload(stage.store, GeneratedFile(2_600), to=batch)
    assert (done.members, done.left_out_count, len(done.left_out)) == (100, 2_500, 100)
    with pytest.raises(InvalidMembers, match="all of them are excluded or in unfinished batches"):
        upload(stage.store, GeneratedFile(2_500))


def test_a4_others_write_while_a_file_is_read_and_between_its_parts(stage: Stage, database: Database) -> None:
    impatient = database.open(patience_seconds=0.1)
    turns = 0

    def write() -> None:
        nonlocal turns
        turns += 1
        with impatient.transaction() as tx:
            lock_runbook(tx, "wave")

    rows = 2 * MOST_ROWS_IN_PART + 1
    done = upload(stage.store, GeneratedFile(rows, looking_on=write), at_part=write)
    assert done.members == rows
    # It is read twice, eight kilobytes at a time.
    assert turns > 2 * 20
    with stage.store.reading() as tx:
        assert [entry.action for entry in audit_page(tx)] == ["batch.add_members"] * 2 + ["batch.create"]


def test_a4_wide_rows_make_shorter_parts(stage: Stage) -> None:
    parts = 0

    def count() -> None:
        nonlocal parts
        parts += 1

    upload(stage.store, GeneratedFile(100, width=100_000), at_part=count)
    assert parts == 10


def test_o13_a_batch_is_made_of_the_first_part_in_which_somebody_is_free(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matoolkit.admin.uploads.MOST_ROWS_IN_PART", 10)
    upload(stage.store, GeneratedFile(25))
    done = upload(stage.store, GeneratedFile(45))
    assert (done.batch.id, done.members, done.left_out_count) == (2, 20, 25)
    with pytest.raises(InvalidMembers, match="all of them are excluded or in unfinished batches"):
        upload(stage.store, GeneratedFile(45))
    with stage.store.reading() as tx:
        assert count_batches(tx) == 2
