"""Cancelling a batch stops its work, not only its status (rule O12)."""

from dataclasses import dataclass

from matoolkit.admin.recording import locked_batch, record
from matoolkit.announcing.withdrawal import withdraw_unsent
from matoolkit.domain.moves.batch import CANCEL
from matoolkit.domain.states import OPEN_STEPS, StepStatus
from matoolkit.errors import WrongBatchStatus
from matoolkit.ids import Kind
from matoolkit.ports import Publisher
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import cancel_batches, release_batches
from matoolkit.store.inits import inits_of_batches
from matoolkit.store.moves import cancel
from matoolkit.store.phases import cancel_phases, phases_of_batches
from matoolkit.store.rollbacks import open_rollbacks_of_batches, rollbacks_in_sequences
from matoolkit.store.steps import cancel_steps_of_batches


@dataclass(frozen=True, slots=True)
class Cancellation:
    """What was stopped; a job in flight cannot be recalled."""

    batch_id: int
    phases: int
    steps: int
    jobs_in_flight: int
    compensations_finishing: int


def cancel_batch(
    store: Store, publisher: Publisher, batch_id: int, *, by: str, reason: str | None = None
) -> Cancellation:
    """Cancel a batch: nothing more is dispatched, and compensations that have begun finish."""
    with store.transaction() as tx:
        batch, at = locked_batch(tx, batch_id), tx.time()
        if batch.status not in CANCEL.from_states:
            raise WrongBatchStatus(batch_id, batch.status, "only one that has not ended can be cancelled")
        cancel_batches(tx, [batch_id], at)
        release_batches(tx, [batch_id])
        phases = cancel_phases(tx, [phase.id for phase in phases_of_batches(tx, [batch_id])], at)
        steps = cancel_steps_of_batches(tx, [batch_id], at)
        withdrawn = withdraw_unsent(tx, publisher, steps)
        _cancel_init(tx, publisher, batch_id)
        finishing = _cancel_compensations(tx, batch_id)
        in_flight = sum(step.lost_at is not None for step in steps) - len(withdrawn)
        outcome = Cancellation(batch_id, len(phases), len(steps), in_flight, finishing)
        after = {"status": CANCEL.to_state, "phases": len(phases), "steps": len(steps)}
        record(tx, batch, "batch.cancel", by, reason, {"status": batch.status}, after)
        return outcome


def _cancel_init(tx: Transaction, publisher: Publisher, batch_id: int) -> None:
    unfinished = [init for init in inits_of_batches(tx, [batch_id]) if init.status in OPEN_STEPS]
    cancelled = set(cancel(tx, Kind.INIT, [init.id for init in unfinished], tx.time()))
    withdraw_unsent(tx, publisher, [init for init in unfinished if init.id in cancelled], Kind.INIT)


def _cancel_compensations(tx: Transaction, batch_id: int) -> int:
    """Drop compensations that have not begun, and return how many steps of the others are still to come."""
    waiting = open_rollbacks_of_batches(tx, [batch_id])
    keys = {rollback.sequence_key for rollback in waiting}
    begun = {row.sequence_key for row in rollbacks_in_sequences(tx, keys) if _has_begun(row.status, row.attempt)}
    dropped = [rollback.id for rollback in waiting if rollback.sequence_key not in begun]
    return len(waiting) - len(cancel(tx, Kind.ROLLBACK, dropped, tx.time()))


def _has_begun(status: StepStatus, attempt: int) -> bool:
    # A step for which no job could be made has begun too.
    return attempt > 0 or status not in (StepStatus.PENDING, StepStatus.CANCELLED)
