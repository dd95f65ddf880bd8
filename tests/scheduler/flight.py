"""Batches in flight, for tests of what a new version does to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import text

from matoolkit.admin.publishing import Published, publish
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR
from matoolkit.clock import VirtualClock
from matoolkit.domain.messages import WorkerJob, correlation_of
from matoolkit.domain.moves.step import Dispatch
from matoolkit.domain.states import BatchStatus, PhaseStatus
from matoolkit.ids import Kind
from matoolkit.ports import Outgoing
from matoolkit.runbook.parse import parse_runbook
from matoolkit.scheduler.leasing import Confirm
from matoolkit.scheduler.transitions import TransitionCounts, transition_batches
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow, NewBatch, batches_by_id, insert_batches
from matoolkit.store.executions import InitRow, StepRow, steps_by_id
from matoolkit.store.inits import NewInit, inits_of_batches, insert_inits
from matoolkit.store.members import NewMember, insert_members
from matoolkit.store.moves import move_steps
from matoolkit.store.phases import NewPhase, PhaseRow, dispatch_phases, insert_phases, phases_of_batches
from matoolkit.store.runbooks import RunbookRow, active_runbook
from matoolkit.store.steps import NewStep, insert_steps

# Everything that a transition may change, without the numbers of rows, which a rolled back transaction uses up.
_STATE = (
    "SELECT id, runbook_id, status, init_count FROM batches ORDER BY id",
    "SELECT batch_id, shut_from, opened_at FROM gates ORDER BY batch_id, shut_from",
    "SELECT batch_id, runbook_version, phase_name, due_at, status, completed_at FROM phase_executions ORDER BY 1, 2, 4",
    "SELECT id, status, job_id, lost_at, poll_due_at, retry_after FROM step_executions ORDER BY id",
    "SELECT batch_id, runbook_version, status, lost_at FROM init_executions ORDER BY batch_id, runbook_version",
    "SELECT id, status, epoch FROM batch_members ORDER BY id",
    "SELECT version, is_active, ignore_overdue_applied FROM runbooks ORDER BY version",
    "SELECT topic, message_id FROM bus_messages ORDER BY topic, message_id",
)


def anybody(_: Transaction) -> None:
    """Confirm a lease that nobody else wants."""


@dataclass
class Flight:
    """A runbook, its batches, and a scheduler that lets them take its newest version."""

    store: Store
    bus: SqlBus
    clock: VirtualClock

    def publish(self, content: str, **wishes: Any) -> Published:
        return publish(self.store, content, by="anna", now=self.clock.now(), **wishes)

    def tick(self, confirm: Confirm = anybody, row: RunbookRow | None = None) -> TransitionCounts:
        row = row or self.version()
        runbook = parse_runbook(row.yaml_content)
        return transition_batches(self.store, self.bus, row, runbook, self.clock.now(), confirm)

    def version(self) -> RunbookRow:
        with self.store.reading() as tx:
            row = active_runbook(tx, "wave")
        assert row
        return row

    def batches(
        self, count: int, status: BatchStatus = BatchStatus.ACTIVE, *, manual: bool = False, days: float = 3
    ) -> list[BatchRow]:
        """Create batches of the active version, with its phases; each starts a minute after the one before."""
        row = self.version()
        runbook = parse_runbook(row.yaml_content)
        first = self.clock.now() + timedelta(days=days)
        starts = [None if manual else first + timedelta(minutes=number) for number in range(count)]
        inits = 1 if status is BatchStatus.INIT_DISPATCHED else 0
        with self.store.transaction() as tx:
            new = [NewBatch(row.id, row.name, start, status, manual, init_count=inits) for start in starts]
            made = insert_batches(tx, new, self.clock.now())
            phases = [
                NewPhase(
                    batch.id,
                    row.version,
                    phase.name,
                    index,
                    phase.offset.minutes,
                    batch.batch_start_time and phase.offset.due_at(batch.batch_start_time),
                )
                for batch in made
                for index, phase in enumerate(runbook.phases)
            ]
            insert_phases(tx, phases)
        return made

    def batch(self, status: BatchStatus = BatchStatus.ACTIVE, *, manual: bool = False, days: float = 3) -> BatchRow:
        return self.batches(1, status, manual=manual, days=days)[0]

    def begin(self, batches: Sequence[BatchRow], phase: str, members: int = 1, version: int | None = None) -> list[int]:
        """Let a phase begin: it is dispatched, its members have a step each, and their jobs wait for a worker."""
        wanted = {batch.id for batch in batches}
        with self.store.transaction() as tx:
            chosen = [
                one.id
                for one in phases_of_batches(tx, sorted(wanted))
                if one.phase_name == phase and version in (None, one.runbook_version)
            ]
            begun = set(dispatch_phases(tx, chosen, self.clock.now()))
            phases = [one for one in phases_of_batches(tx, sorted(wanted)) if one.id in begun]
            new = [
                NewMember(batch.id, f"{phase}{number}", "{}", "h", caught_up_at=self.clock.now())
                for batch in batches
                for number in range(members)
            ]
            people = insert_members(tx, new, self.clock.now())
            of_batch = {one.batch_id: one.id for one in phases}
            steps = [self._step(one.batch_id, of_batch[one.batch_id], one.id) for one in people]
            ids = sorted(one.id for one in insert_steps(tx, steps, self.clock.now()))
            self._send(tx, Kind.STEP, ids)
        return ids

    def begin_init(self, batch: BatchRow, version: int = 1) -> None:
        new = NewInit(
            batch_id=batch.id,
            runbook_version=version,
            init_count=1,
            step_name="announce",
            step_index=0,
            worker_id="worker-01",
            timeout_sec=60,
        )
        with self.store.transaction() as tx:
            self._send(tx, Kind.INIT, [one.id for one in insert_inits(tx, [new], self.clock.now())])

    def now(self, batch: BatchRow) -> BatchRow:
        with self.store.reading() as tx:
            return batches_by_id(tx, [batch.id])[0]

    def phases(self, batch: BatchRow) -> list[tuple[int, str, PhaseStatus]]:
        return [(one.runbook_version, one.phase_name, one.status) for one in self.phase_rows(batch)]

    def phase_rows(self, batch: BatchRow) -> list[PhaseRow]:
        with self.store.reading() as tx:
            return phases_of_batches(tx, [batch.id])

    def steps(self, ids: Sequence[int]) -> list[StepRow]:
        with self.store.reading() as tx:
            return steps_by_id(tx, ids)

    def inits(self, batch: BatchRow) -> list[InitRow]:
        with self.store.reading() as tx:
            return inits_of_batches(tx, [batch.id])

    def events(self) -> list[tuple[str, Any]]:
        """Return what the orchestrator is told: ids and bodies."""
        received = self.bus.receive(EVENTS_OF_ORCHESTRATOR, 1000)
        return [(one.message_id, one.body) for one in received]

    def state(self) -> list[list[tuple[Any, ...]]]:
        with self.store.reading() as tx:
            return [tx.rows(lambda *row: row, text(query)) for query in _STATE]

    def _step(self, batch_id: int, phase_id: int, member_id: int) -> NewStep:
        return NewStep(
            batch_id=batch_id,
            phase_execution_id=phase_id,
            batch_member_id=member_id,
            epoch=1,
            step_name="do",
            step_index=0,
            worker_id="worker-01",
            timeout_sec=3600,
        )

    def _send(self, tx: Transaction, kind: Kind, ids: Sequence[int]) -> None:
        lost_at: datetime = self.clock.now() + timedelta(hours=1)
        jobs = {number: f"{kind}-{number}-attempt-1" for number in ids}
        move_steps(tx, kind, [Dispatch(one, 1, job, "F", "{}", lost_at) for one, job in jobs.items()], self.clock.now())
        sent = [
            Outgoing(job, WorkerJob(job, 1, "worker-01", "F", {}, correlation_of(one, kind, "wave", 1)))
            for one, job in jobs.items()
        ]
        self.bus.publish(tx, sent)
