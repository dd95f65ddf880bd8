"""What a person sees of a batch at one moment, read at once, so that its numbers agree with each other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from matoolkit.admin.approvals import Asking, asked_in_batch
from matoolkit.admin.queries import BatchDetail, PhaseView, batch_detail
from matoolkit.domain.gates import Gate, may_be_about, why_of
from matoolkit.domain.states import FAILED_STEPS, UNFINISHED_BATCHES, PhaseStatus
from matoolkit.domain.why import Why
from matoolkit.store import Store, Transaction
from matoolkit.store.audit import AuditEntry, audit_page
from matoolkit.store.batches import BatchRow
from matoolkit.store.enrolments import places_of_keys
from matoolkit.store.executions import InitRow
from matoolkit.store.failures import FailureGroup, failures_by_error
from matoolkit.store.gates import gates_in_force
from matoolkit.store.phases import PhaseRow
from matoolkit.store.runbooks import runbooks_by_id

_LATEST_DEEDS = 6


@dataclass(frozen=True, slots=True)
class BatchLook:
    """A batch with its phases and failures, and when it was looked at."""

    at: datetime
    version: int
    detail: BatchDetail
    failures: Sequence[FailureGroup]
    deeds: Sequence[AuditEntry] = ()
    gates: Sequence[Why] = ()
    asked: Sequence[Asking] = ()

    @property
    def phases(self) -> list[PhaseView]:
        """The phases that count, in the order of their time; those of an older version are superseded."""
        current = [view for view in self.detail.phases if view.phase.status is not PhaseStatus.SUPERSEDED]
        return sorted(current, key=lambda view: view.phase.order)

    @property
    def failed_inits(self) -> list[InitRow]:
        """The steps of the latest init that failed."""
        latest = max((init.runbook_version for init in self.detail.inits), default=0)
        return [one for one in self.detail.inits if one.runbook_version == latest and one.status in FAILED_STEPS]

    @property
    def next_phase(self) -> PhaseRow | None:
        """The phase that begins next, if one is still to begin."""
        pending = (view.phase for view in self.phases if view.phase.status is PhaseStatus.PENDING)
        return next(pending, None)

    @property
    def failed_members(self) -> int:
        """How many members failed in ways that are listed."""
        return sum(group.members for group in self.failures)


def look_at_batch(store: Store, batch_id: int) -> BatchLook:
    """Look at a batch."""
    with store.reading() as tx:
        detail = batch_detail(store.within(tx), batch_id)
        (row,) = runbooks_by_id(tx, [detail.view.batch.runbook_id])
        deeds = audit_page(tx, batch_id=batch_id, limit=_LATEST_DEEDS)
        failures = failures_by_error(tx, batch_id)
        batch = detail.view.batch
        gates, asked = _gates_of(tx, batch), asked_in_batch(tx, batch)
        return BatchLook(tx.time(), row.version, detail, failures, deeds, gates, asked)


def _gates_of(tx: Transaction, batch: BatchRow) -> list[Why]:
    """Say which stored gates keep the batch, a phase of it, or somebody in it; a hold is told of elsewhere."""
    if batch.status not in UNFINISHED_BATCHES:
        return []
    name = batch.runbook_name
    in_force = (gate for gate in gates_in_force(tx, tx.time()) if not gate.is_hold)
    mine = [gate for gate in in_force if may_be_about(gate, batch.id, name)]
    paused = {gate.member_key_fold for gate in mine if gate.member_key_fold is not None}
    places = places_of_keys(tx, name, paused)
    here = {place.member_key_fold for place in places if place.batch_id == batch.id}
    return [_in_words(gate) for gate in mine if gate.member_key_fold is None or gate.member_key_fold in here]


def _in_words(gate: Gate) -> Why:
    """Say why a gate keeps something, and whom if it is about less than the batch."""
    why = why_of(gate)
    if gate.member_key_fold is not None:
        return replace(why, sentence=f"member {gate.member_key_fold}: {why.sentence}")
    if gate.worker_id is not None:
        return replace(why, sentence=f"worker {gate.worker_id}: {why.sentence}")
    return why
