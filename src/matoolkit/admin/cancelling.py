"""Cancelling a batch stops its work, not only its status (rule O12)."""

from dataclasses import dataclass

from matoolkit.admin.recording import locked_batch, record
from matoolkit.announcing.cancelling import cancel_with_work
from matoolkit.domain.moves.batch import CANCEL
from matoolkit.errors import WrongBatchStatus
from matoolkit.ports import Publisher
from matoolkit.store import Store


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
        batch = locked_batch(tx, batch_id)
        if batch.status not in CANCEL.from_states:
            raise WrongBatchStatus(batch_id, batch.status, "only one that has not ended can be cancelled")
        stopped = cancel_with_work(tx, publisher, [batch_id], tx.time(), by)
        after = {"status": CANCEL.to_state, "phases": stopped.phases, "steps": stopped.steps}
        record(tx, batch, "batch.cancel", by, reason, {"status": batch.status}, after)
        return Cancellation(
            batch_id, stopped.phases, stopped.steps, stopped.jobs_in_flight, stopped.compensations_finishing
        )
