"""Manual batches are advanced by a person: init first, then phase by phase in order (rule O13)."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from matoolkit.admin.queries import existing_batch
from matoolkit.admin.recording import locked_batch, record
from matoolkit.announcing.doors import load_doors
from matoolkit.announcing.inits import request_inits
from matoolkit.announcing.phases import dispatch_and_announce
from matoolkit.announcing.signoffs import sign_offs_of_init
from matoolkit.domain.doors import Door, PhaseDoor, Work
from matoolkit.domain.gates import Gates
from matoolkit.domain.signoff import SignOffs
from matoolkit.domain.states import BatchStatus, PhaseStatus
from matoolkit.errors import CannotAdvance, GateShut, NotManual
from matoolkit.ports import Publisher
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow, activate_batches, advance_to_phase
from matoolkit.store.counts import active_counts
from matoolkit.store.gates import gates_in_force
from matoolkit.store.phases import PhaseRow, phases_of_batches
from matoolkit.store.runbooks import runbooks_by_id


@dataclass(frozen=True, slots=True)
class Advance:
    """What an advance began, the init or a phase, and what comes next; nothing if all phases are over."""

    batch_id: int
    action: Literal["init_dispatched", "phase_dispatched", "all_phases_complete"]
    phase_name: str | None = None
    members: int = 0
    steps: int = 0
    next_phase: str | None = None


def next_advance(store: Store, batch_id: int) -> Advance:
    """Return what an advance would begin now, or refuse as an advance would; nothing is changed."""
    with store.reading() as tx:
        return _planned(tx, existing_batch(tx, batch_id))[0]


def advance_batch(store: Store, publisher: Publisher, batch_id: int, *, by: str, reason: str | None = None) -> Advance:
    """Start the next part of a manual batch, once the part before has ended."""
    with store.transaction() as tx:
        batch = locked_batch(tx, batch_id)
        planned, phase = _planned(tx, batch)
        if phase is not None:
            activate_batches(tx, [batch_id])
            dispatch_and_announce(tx, publisher, [phase], {batch_id: batch}, tx.time())
            advance_to_phase(tx, batch_id, phase.phase_name)
            record(tx, batch, "batch.advance", by, reason, {"phase": batch.current_phase}, {"phase": phase.phase_name})
        elif planned.action == "init_dispatched":
            version = runbooks_by_id(tx, [batch.runbook_id])[0].version
            request_inits(tx, publisher, version, [batch], tx.time())
            record(tx, batch, "batch.advance", by, reason, None, {"init": version})
        return planned


def _planned(tx: Transaction, batch: BatchRow) -> tuple[Advance, PhaseRow | None]:
    """Return what comes next, and the phase if it is one."""
    if not batch.is_manual:
        raise NotManual(batch.id)
    (version,) = runbooks_by_id(tx, [batch.runbook_id])
    model = parse_runbook(version.yaml_content)
    members = active_counts(tx, [batch.id]).get(batch.id, 0)
    if batch.status is BatchStatus.COMPLETED:
        return Advance(batch.id, "all_phases_complete"), None
    if batch.status is BatchStatus.DETECTED and model.init:
        asked = sign_offs_of_init(tx, batch, version.version, model, tx.time())
        _refuse_at_gate(tx, batch, "the init", None, asked)
        following = next(iter(_in_order(phases_of_batches(tx, [batch.id]))), None)
        then = following.phase_name if following else None
        return Advance(batch.id, "init_dispatched", None, members, len(model.init), then), None
    phase, *later = _next_phases(tx, batch, members)
    door = load_doors(tx, [phase], {batch.id: batch}, tx.time())[phase.id]
    _refuse_at_gate(tx, batch, f"phase '{phase.phase_name}'", door)
    steps = members * len(model.phases[phase.phase_index].steps)
    then = later[0].phase_name if later else None
    return Advance(batch.id, "phase_dispatched", phase.phase_name, members, steps, then), phase


def _refuse_at_gate(
    tx: Transaction, batch: BatchRow, what: str, phase: PhaseDoor | None, init: SignOffs | None = None
) -> None:
    """Refuse to begin what a gate keeps, a phase or else the init, and name every gate (rule G12)."""
    work = Work(batch.runbook_name, batch.id, is_init=phase is None, phase=phase, init=init)
    shut = Gates(gates_in_force(tx, tx.time())).at(Door.START, work)
    if shut:
        raise GateShut(batch.id, what, [why.sentence for why in shut])


def _next_phases(tx: Transaction, batch: BatchRow, members: int) -> list[PhaseRow]:
    """Return the phase that comes next, and those after it."""
    if batch.status is BatchStatus.INIT_DISPATCHED:
        raise CannotAdvance(batch.id, "its init has not ended")
    if batch.status not in (BatchStatus.DETECTED, BatchStatus.ACTIVE):
        raise CannotAdvance(batch.id, f"it is {batch.status}")
    phases = phases_of_batches(tx, [batch.id])
    running = [phase.phase_name for phase in phases if phase.status is PhaseStatus.DISPATCHED]
    if running:
        raise CannotAdvance(batch.id, f"phase '{running[0]}' has not ended")
    pending = _in_order(phases)
    if not pending:
        raise CannotAdvance(batch.id, "no phase is left")
    if not members:
        raise CannotAdvance(batch.id, "no active member is left in it")
    return pending


def _in_order(phases: list[PhaseRow]) -> list[PhaseRow]:
    """Return the phases that wait, the largest offset first, then as the runbook lists them."""
    return sorted((phase for phase in phases if phase.status is PhaseStatus.PENDING), key=attrgetter("order"))
