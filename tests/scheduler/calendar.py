"""A source, a scheduler and a clock: rows go in, ticks pass, batches and messages come out."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import yaml
from sqlalchemy import text

from matoolkit.admin.publishing import publish, set_automation
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import jobs_of_worker
from matoolkit.clock import VirtualClock
from matoolkit.domain.messages import WorkerJob, correlation_of
from matoolkit.domain.moves import batch as batch_moves
from matoolkit.domain.moves.step import Dispatch, NoteLate
from matoolkit.domain.states import BatchStatus, OverdueBehavior
from matoolkit.errors import SourceFailed
from matoolkit.ids import Kind
from matoolkit.ports import Outgoing, Piece, Source
from matoolkit.runbook.model import DataSource
from matoolkit.scheduler.leasing import SchedulerLease
from matoolkit.scheduler.tallies import Tally
from matoolkit.scheduler.tick import Scheduler
from matoolkit.store import Store
from matoolkit.store.automation import TickRow, last_tick
from matoolkit.store.batches import BatchRow, batches_by_id, move_batches
from matoolkit.store.executions import StepRow, steps_by_id
from matoolkit.store.holds import approve_hold
from matoolkit.store.members import MemberAt, MemberRow, Outputs, fail_members, keep_outputs, members_by_id
from matoolkit.store.moves import move_steps
from matoolkit.store.phases import PhaseRow, phases_of_batches
from matoolkit.store.runbooks import active_runbook
from matoolkit.store.steps import NewStep, insert_steps
from tests.databases import full_name

TICK = timedelta(minutes=5)
COLUMNS = ("id", "start", "city")


def runbook(name: str = "wave", **changes: Any) -> str:
    """A runbook with phases a week before, an hour before and at T."""
    document: dict[str, Any] = {
        "name": name,
        "data_source": {
            "type": "sql",
            "connection": "SOURCE",
            "query": "SELECT id, start, city FROM people",
            "primary_key": "id",
            "batch_time_column": "start",
        },
        "phases": [_phase("prepare", "T-7d"), _phase("warn", "T-1h"), _phase("cutover", "T-0")],
    }
    document["data_source"] |= changes.pop("data_source", {})
    document |= changes
    document["data_source"] = {key: value for key, value in document["data_source"].items() if value is not None}
    return yaml.safe_dump(document, sort_keys=False)


def with_init(**changes: Any) -> str:
    """A runbook whose phases wait for init."""
    return runbook(init=[step("announce", "{{_batch_id}}")], **changes)


def immediate(**changes: Any) -> str:
    """A runbook whose members start at once."""
    source = {"batch_time_column": None, "batch_time": "immediate"} | changes
    return runbook(data_source=source, phases=[_phase("now", "T-0")])


def step(name: str, user: str = "{{_member_key}}") -> dict[str, Any]:
    parameters = {"UserId": user, "Enabled": True}
    return {"name": name, "worker_id": "worker-01", "function": "Set-EntraUserEnabled", "params": parameters}


def _phase(name: str, offset: str) -> dict[str, Any]:
    return {"name": name, "offset": offset, "steps": [step(f"{name}-it")]}


@dataclass
class People:
    """A source: who is in it, by key, with a start and a city; or what is wrong with it."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    fault: Exception | None = None
    columns: tuple[str, ...] = COLUMNS
    piece: int = 5_000
    reads: int = 0

    def pieces(self, query: str) -> Iterator[Piece]:  # noqa: ARG002 - it returns what it was told to
        self.reads += 1
        if self.fault:
            raise self.fault
        for at in range(0, max(len(self.rows), 1), self.piece):
            yield Piece(self.columns, self.rows[at : at + self.piece])


@dataclass
class Calendar:
    """A scheduler and its surroundings."""

    store: Store
    clock: VirtualClock
    people: People = field(default_factory=People)
    name: str = "one"
    others: dict[str, People] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bus = SqlBus(self.store)
        self.stop = threading.Event()
        lease = SchedulerLease(self.store, self.name, timedelta(seconds=90), self.stop)
        self.scheduler = Scheduler(self.store, self.bus, self._source, self.clock, lease, TICK)
        self.start = self.clock.now() + timedelta(days=10)

    def _source(self, description: DataSource) -> Source:
        return self.others.get(description.connection or "", self.people)

    def publish(self, content: str | None = None, *, enable: bool = True, **changes: Any) -> None:
        publish(
            self.store,
            content or runbook(),
            by="ann",
            overdue_behavior=changes.pop("overdue", OverdueBehavior.RERUN),
            rerun_init=changes.pop("rerun_init", False),
            enable=enable,
            now=self.clock.now(),
        )

    def switch(self, *, enabled: bool) -> None:
        set_automation(self.store, "wave", enabled=enabled, by="ann", now=self.clock.now())

    def in_source(self, *keys: str, at: datetime | str | None = None, city: str = "Bern") -> None:
        """Let the source return these people with a start; others stay as they are."""
        self.gone(*keys)
        start = self.start if at is None else at
        written = start.isoformat() if isinstance(start, datetime) else start
        self.people.rows += [(key, written, city) for key in keys]

    def gone(self, *keys: str) -> None:
        self.people.rows = [row for row in self.people.rows if row[0] not in keys]

    def tick(self, later: timedelta = timedelta()) -> Tally:
        """Let time pass and tick, and return what was done for the first runbook."""
        self.clock.advance(later)
        tallies = self.scheduler.tick()
        assert tallies is not None
        return tallies[0]

    def batches(self) -> list[BatchRow]:
        with self.store.reading() as tx:
            return batches_by_id(tx, tx.values(text("SELECT id FROM batches")))

    def batch(self, at: datetime | None = None) -> BatchRow:
        (found,) = (batch for batch in self.batches() if batch.batch_start_time == (at or self.start))
        return found

    def members(self, at: datetime | None = None) -> dict[str, str]:
        """Everybody who is or was in a batch, with their status."""
        return {member.member_key: member.status.value for member in self.member_rows(self.batch(at).id)}

    def member_rows(self, batch_id: int) -> list[MemberRow]:
        with self.store.reading() as tx:
            ids = tx.values(text(f"SELECT id FROM batch_members WHERE batch_id = {batch_id}"))
            return members_by_id(tx, ids)

    def member(self, key: str, at: datetime | None = None) -> MemberRow:
        (found,) = (member for member in self.member_rows(self.batch(at).id) if member.member_key == key)
        return found

    def phases(self, at: datetime | None = None) -> dict[str, str]:
        return {phase.phase_name: phase.status.value for phase in self.phase_rows(at)}

    def phase_rows(self, at: datetime | None = None) -> list[PhaseRow]:
        with self.store.reading() as tx:
            return phases_of_batches(tx, [self.batch(at).id])

    def messages(self) -> list[str]:
        """Ids of the messages that were published since the last look."""
        with self.store.transaction() as tx:
            found = tx.values(text("SELECT message_id FROM bus_messages ORDER BY id"))
            tx.execute(text("DELETE FROM bus_messages"))
            return found

    @property
    def data_table(self) -> str:
        """The data table of the first version, as a query names it."""
        return full_name(self.store, "runbook_wave_v1")

    def sql(self, statement: str) -> list[Any]:
        with self.store.transaction() as tx:
            return tx.rows(lambda *row: row, text(statement))

    def change(self, statement: str) -> None:
        with self.store.transaction() as tx:
            tx.execute(text(statement))

    def end(self, status: BatchStatus, at: datetime | None = None) -> None:
        """End a batch as the orchestrator would."""
        moves = (batch_moves.COMPLETE, batch_moves.FAIL, batch_moves.CANCEL)
        (move,) = (one for one in moves if one.to_state is status)
        with self.store.transaction() as tx:
            assert move_batches(tx, move, [self.batch(at).id], self.clock.now())

    def fail(self, key: str, at: datetime | None = None) -> None:
        with self.store.transaction() as tx:
            member = self.member(key, at)
            assert fail_members(tx, [MemberAt(member.id, member.epoch)], self.clock.now())

    def approve(self, at: datetime | None = None) -> None:
        """Approve what a batch is held for now."""
        batch = self.batch(at)
        with self.store.transaction() as tx:
            assert approve_hold(tx, batch.id, batch.hold_key or "", "ann", self.clock.now())

    def work(self, key: str, at: datetime | None = None, *, received: bool = False) -> StepRow:
        """Let a member do the first phase, with outputs; its job waits for the worker, or is with it."""
        member, phase = self.member(key, at), self.phase_rows(at)[0]
        step = NewStep(
            batch_id=member.batch_id,
            phase_execution_id=phase.id,
            batch_member_id=member.id,
            epoch=member.epoch,
            step_name="prepare-it",
            step_index=0,
            worker_id="worker-01",
            timeout_sec=3600,
        )
        now = self.clock.now()
        with self.store.transaction() as tx:
            (made,) = insert_steps(tx, [step], now)
            job = f"step-{made.id}-attempt-1"
            move_steps(tx, Kind.STEP, [Dispatch(made.id, 1, job, "F", "{}", now + timedelta(days=1))], now)
            message = WorkerJob(
                job, member.batch_id, "worker-01", "F", {}, correlation_of(made.id, Kind.STEP, "wave", 1)
            )
            self.bus.publish(tx, [Outgoing(job, message)])
            keep_outputs(tx, [Outputs(member.id, member.epoch, f'{{"from":"{key}"}}')])
        if received:
            assert self.bus.receive(jobs_of_worker("worker-01"), 100)
        return self.step_row(made.id)

    def step_row(self, step_id: int) -> StepRow:
        with self.store.reading() as tx:
            return steps_by_id(tx, [step_id])[0]

    def answer(self, step: StepRow, outputs: str) -> None:
        """Let the answer to a cancelled step's job come, with outputs."""
        with self.store.transaction() as tx:
            assert move_steps(tx, Kind.STEP, [NoteLate(step.id, step.job_id or "", "{}")], self.clock.now())
            keep_outputs(tx, [Outputs(step.batch_member_id, step.epoch, outputs)])

    def error(self, name: str = "wave") -> str | None:
        with self.store.reading() as tx:
            row = active_runbook(tx, name)
        return row.last_error if row else None

    def last(self, name: str = "wave") -> TickRow:
        with self.store.reading() as tx:
            row = last_tick(tx, name)
        assert row
        return row

    def break_source(self, message: str = "the source is away") -> None:
        self.people.fault = SourceFailed(message)

    def mend_source(self) -> None:
        self.people.fault = None
