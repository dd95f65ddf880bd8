"""Manual batches are advanced by a person: init first, then phase by phase in order (rule O13)."""

from dataclasses import dataclass

from matoolkit.admin.recording import locked_batch, record
from matoolkit.domain.messages import BatchInit, PhaseDue
from matoolkit.domain.progress import phase_order
from matoolkit.domain.states import BatchStatus, MemberStatus, PhaseStatus
from matoolkit.errors import CannotAdvance, NotManual
from matoolkit.ids import batch_init_id, phase_due_id
from matoolkit.ports import Outgoing, Publisher
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow, activate_batches, advance_to_phase, dispatch_init
from matoolkit.store.counts import member_counts
from matoolkit.store.phases import PhaseRow, dispatch_phases, phases_of_batches
from matoolkit.store.runbooks import runbooks_by_id


@dataclass(frozen=True, slots=True)
class Advance:
    """What a batch was advanced to: its init, or a phase."""

    batch_id: int
    phase_name: str | None


def advance_batch(store: Store, publisher: Publisher, batch_id: int, *, by: str, reason: str | None = None) -> Advance:
    """Let a manual batch go on to what comes next, once what came before has ended."""
    with store.transaction() as tx:
        batch = locked_batch(tx, batch_id)
        if not batch.is_manual:
            raise NotManual(batch_id)
        version = runbooks_by_id(tx, [batch.runbook_id])[0]
        if batch.status is BatchStatus.DETECTED and parse_runbook(version.yaml_content).init:
            dispatch_init(tx, [batch_id], tx.time())
            message_id = batch_init_id(batch_id, version.version, batch.init_count + 1)
            publisher.publish(tx, [Outgoing(message_id, BatchInit(batch_id, batch.runbook_name, version.version))])
            record(tx, batch, "batch.advance", by, reason, None, {"init": version.version})
            return Advance(batch_id, None)
        phase = _next_phase(tx, batch)
        activate_batches(tx, [batch_id])
        dispatch_phases(tx, [phase.id], tx.time())
        advance_to_phase(tx, batch_id, phase.phase_name)
        due = PhaseDue(batch_id, batch.runbook_name, phase.runbook_version, phase.phase_name, phase.id)
        publisher.publish(tx, [Outgoing(phase_due_id(phase.id, phase.dispatch_count + 1), due)])
        record(tx, batch, "batch.advance", by, reason, {"phase": batch.current_phase}, {"phase": phase.phase_name})
        return Advance(batch_id, phase.phase_name)


def _next_phase(tx: Transaction, batch: BatchRow) -> PhaseRow:
    """Return the phase that comes next: the largest offset first, then as the runbook lists them."""
    if batch.status is BatchStatus.INIT_DISPATCHED:
        raise CannotAdvance(batch.id, "its init has not ended")
    if batch.status not in (BatchStatus.DETECTED, BatchStatus.ACTIVE):
        raise CannotAdvance(batch.id, f"it is {batch.status}")
    phases = phases_of_batches(tx, [batch.id])
    running = [phase.phase_name for phase in phases if phase.status is PhaseStatus.DISPATCHED]
    if running:
        raise CannotAdvance(batch.id, f"phase '{running[0]}' has not ended")
    pending = [phase for phase in phases if phase.status is PhaseStatus.PENDING]
    if not pending:
        raise CannotAdvance(batch.id, "no phase is left")
    if not any(count.status is MemberStatus.ACTIVE for count in member_counts(tx, [batch.id])):
        raise CannotAdvance(batch.id, "no active member is left in it")
    return min(pending, key=lambda phase: phase_order(phase.runbook_version, phase.offset_minutes, phase.phase_index))
