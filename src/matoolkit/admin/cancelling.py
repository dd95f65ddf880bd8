"""Cancelling a batch stops its work, not only its status (rule O12)."""

from collections import Counter
from dataclasses import dataclass

from matoolkit.admin.queries import existing_batch, phase_views
from matoolkit.admin.recording import locked_batch, record
from matoolkit.announcing.cancelling import cancel_with_work
from matoolkit.domain.moves.batch import CANCEL
from matoolkit.domain.states import OPEN_PHASES, StepStatus
from matoolkit.errors import WrongBatchStatus
from matoolkit.ports import Publisher
from matoolkit.store import Store
from matoolkit.store.batches import BatchRow
from matoolkit.store.rollbacks import open_rollbacks_of_batches


@dataclass(frozen=True, slots=True)
class Cancellation:
    """What was stopped; a job in flight cannot be recalled."""

    batch_id: int
    phases: int
    steps: int
    jobs_in_flight: int
    compensations_finishing: int


@dataclass(frozen=True, slots=True)
class OpenWork:
    """What a cancellation would stop: phases, and steps that wait or whose job may still be out."""

    batch_id: int
    phases: tuple[str, ...]
    waiting: int
    under_way: int
    undo_steps: int


def preview_cancellation(store: Store, batch_id: int) -> OpenWork:
    """Say what there is to stop, and change nothing."""
    with store.reading() as tx:
        _require_open(existing_batch(tx, batch_id))
        views = [view for view in phase_views(tx, batch_id) if view.phase.status in OPEN_PHASES]
        undoing = open_rollbacks_of_batches(tx, [batch_id])
    counts = sum((Counter(view.steps) for view in views), Counter())
    return OpenWork(
        batch_id,
        tuple(view.phase.phase_name for view in sorted(views, key=lambda view: view.phase.order)),
        counts[StepStatus.PENDING],
        counts[StepStatus.DISPATCHED] + counts[StepStatus.POLLING],
        len(undoing),
    )


def cancel_batch(
    store: Store, publisher: Publisher, batch_id: int, *, by: str, reason: str | None = None
) -> Cancellation:
    """Cancel a batch: nothing more is dispatched, and compensations that have begun finish."""
    with store.transaction() as tx:
        batch = locked_batch(tx, batch_id)
        _require_open(batch)
        stopped = cancel_with_work(tx, publisher, [batch_id], tx.time(), by)
        after = {"status": CANCEL.to_state, "phases": stopped.phases, "steps": stopped.steps}
        record(tx, batch, "batch.cancel", by, reason, {"status": batch.status}, after)
        return Cancellation(
            batch_id, stopped.phases, stopped.steps, stopped.jobs_in_flight, stopped.compensations_finishing
        )


def _require_open(batch: BatchRow) -> None:
    if batch.status not in CANCEL.from_states:
        raise WrongBatchStatus(batch.id, batch.status, "only one that has not ended can be cancelled")
