"""Init: steps that run once for a batch, one after the other, before its phases (rules O1 and V5)."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from matoolkit.announcing.situations import open_work, undoing_of_init
from matoolkit.announcing.waking import activate_and_wake
from matoolkit.domain.batch import decide_failed_init
from matoolkit.domain.gates import GateKind
from matoolkit.domain.messages import BatchInit
from matoolkit.domain.moves import Ignore
from matoolkit.domain.moves.batch import HOLD
from matoolkit.domain.progress import Compensate, Do, next_of, next_of_init
from matoolkit.domain.states import FAILED_STEPS, BatchStatus, StepStatus
from matoolkit.ids import Kind, occurrence_of_init
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.definitions import fields_from_step
from matoolkit.orchestrator.dispatching import send_first
from matoolkit.store.batches import NarrowBatch, move_batches
from matoolkit.store.holds import Hold, hold_batches
from matoolkit.store.inits import NewInit, insert_inits
from matoolkit.store.narrow_executions import (
    InitState,
    RollbackState,
    init_states_of_batches,
    unfinished_rollbacks_of_inits,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """A request for an init, and the id of the message that made it."""

    message_id: str
    message: BatchInit


def request_inits(agenda: Agenda, requests: Sequence[Request]) -> None:
    """Create the steps of inits that were asked for and have not been overtaken by a later request."""
    new: list[NewInit] = []
    for request in requests:
        message, batch = request.message, agenda.batches.get(request.message.batch_id)
        if (reason := _why_not(request, batch)) is not None:
            log.info("a request for init is ignored: %s", reason, extra={"batch": message.batch_id})
            continue
        version = agenda.version(message.batch_id, message.runbook_version)
        count = agenda.batches[message.batch_id].init_count
        for index, step in enumerate(version.runbook.init):
            fields = fields_from_step(agenda, version.runbook, step, index)
            new.append(NewInit(batch_id=message.batch_id, runbook_version=version.number, init_count=count, **fields))
        if version.runbook.init:
            agenda.inits_to_continue.add(message.batch_id)
        else:
            activate(agenda, [message.batch_id])
    insert_inits(agenda.tx, new, agenda.at)


def continue_inits(agenda: Agenda) -> None:
    """Send the next step of touched inits, or end them."""
    touched, agenda.inits_to_continue = agenda.inits_to_continue, set()
    inits: dict[int, list[InitState]] = defaultdict(list)
    for state in init_states_of_batches(agenda.tx, touched):
        inits[state.batch_id].append(state)
    undoing: dict[int, dict[int, RollbackState]] = defaultdict(dict)
    for rollback in unfinished_rollbacks_of_inits(agenda.tx, touched):
        undoing[rollback.batch_id][rollback.id] = rollback
    to_do: list[InitState] = []
    to_undo: list[RollbackState] = []
    for batch_id in sorted(touched):
        # One job at a time, cancelled ones included: an init never overlaps with its rollback or a newer init (rule
        # O5).
        if any(state.is_in_flight for state in inits[batch_id]):
            continue
        if undoing[batch_id]:
            to_undo += _next_undoing(agenda, agenda.batches[batch_id], undoing[batch_id])
        elif agenda.batches[batch_id].status is BatchStatus.INIT_DISPATCHED:
            to_do += _next_or_end(agenda, agenda.batches[batch_id], inits[batch_id])
    send_first(agenda, Kind.ROLLBACK, to_undo, {})
    send_first(agenda, Kind.INIT, to_do, {})


def activate(agenda: Agenda, batch_ids: Sequence[int]) -> None:
    """Activate batches whose init is done, and wake the members that waited for it."""
    agenda.note_status(activate_and_wake(agenda.tx, agenda.publisher, batch_ids), BatchStatus.ACTIVE)


def _why_not(request: Request, batch: NarrowBatch | None) -> str | None:
    if batch is None:
        return "there is no such batch"
    if batch.status is not BatchStatus.INIT_DISPATCHED:
        return f"the batch is {batch.status}"
    # An old request may be delivered again after a newer one: only the latest counts.
    occurrence = occurrence_of_init(request.message_id)
    if occurrence is not None and occurrence != batch.init_count:
        return f"it is request {occurrence}, and request {batch.init_count} has followed"
    return None


def _next_undoing(agenda: Agenda, batch: NarrowBatch, undoing: dict[int, RollbackState]) -> list[RollbackState]:
    match next_of(undoing_of_init(batch, agenda.gates, list(undoing.values()))):
        case Compensate(number):
            return [undoing[number]]
        case _:
            return []


def _next_or_end(agenda: Agenda, batch: NarrowBatch, inits: Sequence[InitState]) -> list[InitState]:
    # One without steps is done when it is requested. Woken by a gate, the request of another may be on its way.
    if not inits:
        return []
    latest = max(state.runbook_version for state in inits)
    current = sorted((state for state in inits if state.runbook_version == latest), key=lambda state: state.step_index)
    if any(state.init_count < batch.init_count for state in current):
        return []  # a newer init was requested, and its message is on the way
    if any(state.status in FAILED_STEPS for state in current):
        _end_failed(agenda, batch, latest, inits)
    elif all(state.status is StepStatus.SUCCEEDED for state in current):
        activate(agenda, [batch.id])
    else:
        match next_of_init([open_work(state) for state in current if state.status is not StepStatus.SUCCEEDED]):
            case Do(number):
                return [state for state in current if state.id == number]
            case _:
                pass
    return []


def _end_failed(agenda: Agenda, batch: NarrowBatch, version: int, inits: Sequence[InitState]) -> None:
    """End a batch whose init failed; one that had begun under an older version is held instead (rule V5)."""
    older = {phase.runbook_version for phase in agenda.phases_of(batch.id) if phase.runbook_version < version}
    # Under a version whose own init failed, no phase has begun. A person may have approved going on without init, but
    # only if an older version had begun; that version is in `older` too.
    begun = older - {state.runbook_version for state in inits if state.status in FAILED_STEPS}
    decided = decide_failed_init(batch.status, is_rerun=bool(begun))
    if isinstance(decided, Ignore):
        return
    if decided is HOLD:
        shown = orjson.dumps({"kind": "init", "version": version}).decode()
        reason = f"init of version {version} failed; the batch had begun under an older version"
        key = f"init-v{version}-{batch.init_count}"
        hold_batches(agenda.tx, [Hold(batch.id, GateKind.INIT, reason, key, shown, "orchestrator")], agenda.at)
    else:
        agenda.note_status(move_batches(agenda.tx, decided, [batch.id], agenda.at), BatchStatus.FAILED)
    log.warning("init failed; the batch is %s", "held" if decided is HOLD else "failed", extra={"batch": batch.id})
