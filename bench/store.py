"""Three ratios that say whether the store is quick enough, each measured within one run.

    python -m bench.store            SQLite in a temporary folder, and PostgreSQL (see --postgres)
    python -m bench.store --record   the same, and write the results to bench/RESULTS.md

An absolute time says more about the machine than about the code, so each time is divided by that of the
least that could be done, the bare driver or reading the same rows, or by that of the same moves one by one.
"""

import sys
from collections.abc import Iterator
from datetime import timedelta

import orjson
from sqlalchemy import delete

from bench.measuring import NOW, ROUNDS, Ratio, ratio_of, run, seconds
from matoolkit.domain.moves.step import Dispatch, Succeed
from matoolkit.domain.states import BatchStatus, OverdueBehavior
from matoolkit.ids import Kind, Reason, job_id
from matoolkit.store import Store, schema
from matoolkit.store.batches import BatchRow, NewBatch, insert_batches
from matoolkit.store.datanames import DataTableName
from matoolkit.store.datatables import (
    DataRow,
    current_keys,
    data_rows,
    known_fingerprints,
    mark_gone,
    open_data_table,
    upsert_rows,
)
from matoolkit.store.members import NewMember, insert_members
from matoolkit.store.moves import move_steps
from matoolkit.store.phases import NewPhase, insert_phases
from matoolkit.store.runbooks import NewVersion, publish_version
from matoolkit.store.steps import NewStep, insert_steps

MEMBERS = 100_000
MOVES = 10_000


def measured_members(number: int) -> list[NewMember]:
    data = {"UserPrincipalName": "a" * 30, "DisplayName": "b" * 30, "Aliases": ["c" * 20] * 8, "Site": "d" * 40}
    text = orjson.dumps(data).decode()
    return [NewMember(1, f"User{n}@contoso.com", text, f"{n:032x}", caught_up_at=NOW) for n in range(number)]


def prepare(store: Store) -> BatchRow:
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
    """Move 10,000 dispatched steps in one call, against a transaction for each, as who takes one message at a time."""
    answers = iter(dispatched_steps(store, batch, rounds=2))
    whole, single = next(answers), next(answers)

    def at_once() -> None:
        with store.transaction() as tx:
            assert len(move_steps(tx, Kind.STEP, whole, NOW)) == MOVES

    def one_by_one() -> None:
        for answer in single:
            with store.transaction() as tx:
                assert len(move_steps(tx, Kind.STEP, [answer], NOW)) == 1

    mine, least = [seconds(at_once)], [seconds(one_by_one)]
    return ratio_of(
        "guarded move of 10,000 rows in one call ÷ one by one, each in a transaction",
        least,
        mine,
        1 / 20,
        "at most 1/20",
    )


def dispatched_steps(store: Store, batch: BatchRow, rounds: int) -> Iterator[list[Succeed]]:
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
            move_steps(tx, Kind.STEP, sent, NOW)
        yield [Succeed(step, job, '{"Id": "7"}') for step, job in zip(ids, jobs, strict=True)]


def upsert_ratio(store: Store) -> Ratio:
    """Upsert 100,000 rows that have not changed, against reading them."""
    names = ["UserPrincipalName", "DisplayName", "Department", "Aliases", "Site", "Manager"]
    rows = [
        DataRow(
            f"User{n}@contoso.com",
            NOW,
            n.to_bytes(16),
            [f"user{n}@contoso.com", f"User {n}", "Sales", '["a","b"]', "Bern", f"u{n}"],
        )
        for n in range(MEMBERS)
    ]
    present = {row.member_key.casefold() for row in rows}
    with store.transaction() as tx:
        table = open_data_table(tx, DataTableName("runbook_bench_v1", store.dialect.data_schema), names)
        upsert_rows(tx, table, rows, NOW)

    def upsert() -> None:
        with store.transaction() as tx:
            known = known_fingerprints(tx, table)
            done = upsert_rows(tx, table, [row for row in rows if row.fingerprint not in known], NOW)
            assert (done.inserted, done.changed) == (0, 0)
            there = current_keys(tx, table, after=0, limit=MEMBERS)
            assert mark_gone(tx, table, [row_id for row_id, key in there if key not in present], NOW) == 0

    def read() -> None:
        with store.reading() as tx:
            assert len(data_rows(tx, table)) == MEMBERS

    mine, least = [], []
    for _ in range(ROUNDS):
        least.append(seconds(read))
        mine.append(seconds(upsert))
    return ratio_of("upsert of 100,000 unchanged rows ÷ reading them", least, mine, 1.5, "at most 1.5x")


def measure(store: Store) -> list[Ratio]:
    batch = prepare(store)
    return [insert_ratio(store), move_ratio(store, batch), upsert_ratio(store)]


if __name__ == "__main__":
    sys.exit(run("The store", measure, __doc__))
