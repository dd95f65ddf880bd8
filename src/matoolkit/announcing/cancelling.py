"""Cancelling batches stops their work, not only their status (rule O12)."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from matoolkit.announcing.inits import cancel_inits
from matoolkit.announcing.withdrawal import withdraw_unsent
from matoolkit.domain.states import StepStatus
from matoolkit.ids import Kind
from matoolkit.ports import Publisher
from matoolkit.store.batches import cancel_batches
from matoolkit.store.holds import release_batches
from matoolkit.store.inits import inits_of_batches
from matoolkit.store.moves import cancel
from matoolkit.store.narrow_members import narrow_members
from matoolkit.store.phases import cancel_phases, phases_of_batches
from matoolkit.store.rollbacks import open_rollbacks_of_batches, rollbacks_in_sequences
from matoolkit.store.sql.transaction import Transaction
from matoolkit.store.steps import cancel_steps_of_batches


@dataclass(frozen=True, slots=True)
class Stopped:
    """Which batches were cancelled, and how much of their work; a job in flight cannot be recalled."""

    batch_ids: list[int]
    phases: int
    steps: int
    jobs_in_flight: int
    compensations_finishing: int


def cancel_with_work(
    tx: Transaction, publisher: Publisher, batch_ids: Collection[int], at: datetime, by: str | None = None
) -> Stopped:
    """Cancel batches that are locked: nothing more is dispatched, and compensations that have begun finish."""
    ended = cancel_batches(tx, batch_ids, at)
    release_batches(tx, ended, at, by)
    phases = cancel_phases(tx, [phase.id for phase in phases_of_batches(tx, ended)], at)
    steps = cancel_steps_of_batches(tx, ended, at)
    withdrawn = withdraw_unsent(tx, publisher, steps)
    cancel_inits(tx, publisher, inits_of_batches(tx, ended), at)
    finishing = _cancel_compensations(tx, ended, at)
    in_flight = sum(step.lost_at is not None for step in steps) - len(withdrawn)
    return Stopped(ended, len(phases), len(steps), in_flight, finishing)


def _cancel_compensations(tx: Transaction, batch_ids: Collection[int], at: datetime) -> int:
    """Drop compensations that have not begun, and return how many steps of the others are still to come.

    What a person wants undone is undone, whatever becomes of the batch (rule U2).
    """
    waiting = open_rollbacks_of_batches(tx, batch_ids)
    members = narrow_members(tx, {row.batch_member_id for row in waiting if row.batch_member_id is not None})
    undone = {member.id for member in members if member.undone_at is not None}
    keys = {rollback.sequence_key for rollback in waiting}
    begun = {row.sequence_key for row in rollbacks_in_sequences(tx, keys) if _has_begun(row.status, row.attempt)}
    kept = [rollback for rollback in waiting if rollback.sequence_key in begun or rollback.batch_member_id in undone]
    dropped = {rollback.id for rollback in waiting} - {rollback.id for rollback in kept}
    return len(waiting) - len(cancel(tx, Kind.ROLLBACK, dropped, at))


def _has_begun(status: StepStatus, attempt: int) -> bool:
    # A step for which no job could be made has begun too.
    return attempt > 0 or status not in (StepStatus.PENDING, StepStatus.CANCELLED)
