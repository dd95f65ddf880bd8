"""Files of any length: piece by piece into one transaction, and nothing of them if a row is bad (rules O13 and A4)."""

import gc
import io
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from matoolkit.admin.csvfiles import read_csv
from matoolkit.admin.manual import add_to_manual_batch, create_manual_batch
from matoolkit.bus.sql import SqlBus
from matoolkit.clock import VirtualClock
from matoolkit.errors import InvalidMembers
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store
from matoolkit.store.audit import audit_page
from matoolkit.store.batches import count_batches
from matoolkit.store.membership import count_members
from tests.stage import SOURCE, Stage

PHASES = "phases: [{name: a, offset: T-0, steps: [{name: s, worker_id: w, function: Custom-One}]}]"
DESCRIPTION = parse_runbook(f"name: wave\n{SOURCE}{PHASES}").data_source


class GeneratedFile(io.RawIOBase):
    """A file that is made as it is read: as long as wanted, and in nobody's memory."""

    def __init__(self, rows: int, width: int = 20, last: bytes = b"") -> None:
        self._lines = self._made(rows, width, last)
        self._rest = b""

    @staticmethod
    def _made(rows: int, width: int, last: bytes) -> Iterator[bytes]:
        yield b"Email,Name,Start\r\n"
        for number in range(rows):
            yield b"user%d@contoso.com,%s,\r\n" % (number, b"n" * width)
        yield last

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while len(self._rest) < len(buffer) and (line := next(self._lines, None)) is not None:
            self._rest += line
        taken, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)


def upload(store: Store, file: GeneratedFile) -> int:
    rows = read_csv(io.BufferedReader(file), DESCRIPTION).rows
    return create_manual_batch(store, "wave", rows, by="anna").batch.id


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
    given = read_csv(io.BufferedReader(GeneratedFile(rows, width=2_000)), DESCRIPTION).rows
    create_manual_batch(stage.store, name, given, by="anna")


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (b"USER7@contoso.com,x,\r\n", "row 3502: 'USER7@contoso.com' stands in row 9 too"),
        (b",x,\r\n", "row 3502: 'Email' holds no usable key"),
        (b"a,b\r\n", "row 3502: has 2 cells, the header has 3"),
        (b'"a', "row 3502: unexpected end of data"),
        (b"\xff", "the file is not UTF-8 text"),
    ],
)
def test_a4_nothing_is_kept_of_a_file_whose_last_row_is_bad(stage: Stage, last: bytes, said: str) -> None:
    with pytest.raises(InvalidMembers) as refused:
        upload(stage.store, GeneratedFile(3_500, last=last))
    assert refused.value.problems == (said,)
    batch = upload(stage.store, GeneratedFile(3))
    with pytest.raises(InvalidMembers) as refused:
        rows = read_csv(io.BufferedReader(GeneratedFile(3_500, last=last)), DESCRIPTION).rows
        add_to_manual_batch(stage.store, SqlBus(stage.store), batch, rows, by="anna")
    assert refused.value.problems == (said,)
    with stage.store.reading() as tx:
        assert (count_batches(tx), count_members(tx, batch)) == (1, 3)
        assert [entry.action for entry in audit_page(tx)] == ["batch.create"]


def test_o13_who_is_in_a_batch_already_is_counted_and_only_the_first_are_named(stage: Stage) -> None:
    batch = upload(stage.store, GeneratedFile(2_500))
    again = read_csv(io.BufferedReader(GeneratedFile(2_600)), DESCRIPTION).rows
    done = add_to_manual_batch(stage.store, SqlBus(stage.store), batch, again, by="anna")
    assert (done.members, done.left_out_count, len(done.left_out)) == (100, 2_500, 100)
    with pytest.raises(InvalidMembers, match="all of them are in batches under way"):
        upload(stage.store, GeneratedFile(2_500))
