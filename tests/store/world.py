"""A small world to test the store with."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from sqlalchemy import Table, update

from matoolkit.clock import VirtualClock
from matoolkit.domain.moves.step import Dispatch
from matoolkit.domain.states import BatchStatus, OverdueBehavior, RollbackCause
from matoolkit.ids import Kind
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow, NewBatch, insert_batches
from matoolkit.store.members import NewMember, insert_members
from matoolkit.store.moves import move_steps
from matoolkit.store.phases import NewPhase, PhaseRow, insert_phases
from matoolkit.store.rollbacks import NewRollback, insert_rollbacks
from matoolkit.store.runbooks import NewVersion, RunbookRow, publish_version, runbooks_by_id
from matoolkit.store.steps import NewStep, insert_steps

_hours = count(1)


@dataclass
class World:
    """Makes rows with as little said about them as a test needs."""

    store: Store
    clock: VirtualClock

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def runbook(self, name: str = "wave") -> RunbookRow:
        new = NewVersion(name, "name: wave\n", "hash", OverdueBehavior.RERUN, False, "anna")
        with self.store.transaction() as tx:
            return publish_version(tx, new, self.now)

    def batch(
        self,
        runbook: RunbookRow | None = None,
        status: BatchStatus = BatchStatus.ACTIVE,
        start: datetime | None = None,
        manual: bool = False,
    ) -> BatchRow:
        runbook = runbook or self.runbook()
        start = None if manual else start or self.now + timedelta(days=5)
        new = NewBatch(runbook.id, runbook.name, start, status, is_manual=manual)
        with self.store.transaction() as tx:
            return insert_batches(tx, [new], self.now)[0]

    def another(self, batch: BatchRow) -> BatchRow:
        """Make one more batch of a batch's runbook, at a time that no other has."""
        with self.store.reading() as tx:
            (runbook,) = runbooks_by_id(tx, [batch.runbook_id])
        return self.batch(runbook, start=self.now + timedelta(hours=next(_hours)))

    def members(self, batch: BatchRow, count: int, *, waiting: bool = False, prefix: str = "user") -> list[int]:
        caught_up_at = None if waiting else self.now
        new = [
            NewMember(
                batch.id,
                f"{prefix}{number}",
                f'{{"n": {number}}}',
                f"{number:032x}",
                caught_up_at=caught_up_at,
            )
            for number in range(count)
        ]
        with self.store.transaction() as tx:
            return sorted(member.id for member in insert_members(tx, new, self.now))

    def phase(self, batch: BatchRow, index: int = 0, due_at: datetime | None = None) -> PhaseRow:
        new = NewPhase(batch.id, 1, f"phase-{index}", index, 60, due_at or self.now)
        with self.store.transaction() as tx:
            return insert_phases(tx, [new])[0]

    def steps(self, batch: BatchRow, phase: PhaseRow, members: list[int], per_member: int = 1) -> list[int]:
        new = [self.new_step(batch.id, phase.id, member, index) for member in members for index in range(per_member)]
        with self.store.transaction() as tx:
            return sorted(step.id for step in insert_steps(tx, new, self.now))

    def new_step(self, batch: int, phase: int, member: int, index: int = 0) -> NewStep:
        return NewStep(
            batch_id=batch,
            phase_execution_id=phase,
            batch_member_id=member,
            epoch=1,
            step_name=f"step-{index}",
            step_index=index,
            worker_id="worker-01",
            timeout_sec=3600,
        )

    def dispatched(self, tx: Transaction, ids: list[int], attempt: int = 1) -> list[int]:
        return move_steps(tx, Kind.STEP, [self.job(number, attempt) for number in ids], self.now)

    def job(self, step: int, attempt: int = 1) -> Dispatch:
        lost_at = self.now + timedelta(hours=1)
        return Dispatch(step, attempt, f"step-{step}-attempt-{attempt}", "New-EntraUser", "{}", lost_at)

    def rollback(self, tx: Transaction, batch: BatchRow, member: int | None, key: str) -> int:
        """Begin to undo what was done for a member, or an init."""
        new = NewRollback(
            step_name="undo",
            step_index=0,
            worker_id="worker-01",
            timeout_sec=60,
            batch_id=batch.id,
            runbook_version=1,
            cause=RollbackCause.STEP_FAILED,
            sequence_name="undo",
            sequence_key=key,
            batch_member_id=member,
            epoch=None if member is None else 1,
        )
        return insert_rollbacks(tx, [new], self.now)[0].id


def put(tx: Transaction, table: Table, number: int, **values: Any) -> None:
    """Give a row other values, whatever moves there are."""
    tx.execute(update(table).where(table.c.id == number).values(values))
