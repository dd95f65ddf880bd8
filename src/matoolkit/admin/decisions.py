"""What waits for a person's decision: holds, what is late, budgets, sign-offs, pauses and dead letters (rule X6).

No look lists members, and none costs more the more of them there are.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from matoolkit.admin.approvals import Asking, waiting_in
from matoolkit.admin.gating import Subject, subject_of
from matoolkit.admin.matters import Matter, MatterKind
from matoolkit.domain.gates import GateKind
from matoolkit.domain.states import SignOffSubject
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow, batches_by_id
from matoolkit.store.gatekeeping import GateRow, gates_by_id
from matoolkit.store.gates import gates_in_force
from matoolkit.store.phases import next_dues, phases_by_id
from matoolkit.store.unresolved import HeldBatch, LetterGroup, open_letters, waiting_holds
from matoolkit.words import counted

# A sign-off that is needed later is in the inbox, and not yet among what needs a person now (rule U6).
_PRESSING = timedelta(days=1)
_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Inbox:
    """All that waits for a person's decision, the oldest deadline first."""

    at: datetime
    matters: Sequence[Matter]


def inbox(store: Store) -> Inbox:
    """Look for all that waits for a person's decision."""
    with store.reading() as tx:
        at = tx.time()
        found = [matter for look in _LOOKS for matter in look(tx, at)]
        return Inbox(at, sorted(found, key=_urgency))


def _urgency(matter: Matter) -> tuple[datetime, datetime]:
    return matter.deadline or _NEVER, matter.since or _NEVER


def held_batches(tx: Transaction, _: datetime) -> list[Matter]:
    """Find the batches that are held, longest first."""
    found = waiting_holds(tx)
    dues = next_dues(tx, [batch.id for batch in found])
    return [_hold(batch, dues.get(batch.id)) for batch in found]


def _hold(batch: HeldBatch, deadline: datetime | None) -> Matter:
    return Matter(
        MatterKind.HELD,
        f"Batch {batch.id} of {batch.runbook_name} is held",
        f"{batch.hold_reason or 'it waits for approval'}; no phase of it begins until somebody decides",
        batch.held_at,
        f"/holds/{batch.id}",
        f"matoolkit hold show {batch.id}",
        *(batch.id, batch.batch_start_time, batch.runbook_name),
        deadline=deadline,
    )


def late_phases(tx: Transaction, at: datetime) -> list[Matter]:
    """Find what is too late to begin without a person."""
    return list(_of_kind(tx, at, MatterKind.LATE, GateKind.LATE))


def budgets(tx: Transaction, at: datetime) -> list[Matter]:
    """Find phases in which too many have failed."""
    return list(_of_kind(tx, at, MatterKind.BUDGET, GateKind.BUDGET))


def pauses(tx: Transaction, at: datetime) -> list[Matter]:
    """Find what people have paused."""
    return list(_of_kind(tx, at, MatterKind.PAUSED, GateKind.PAUSE))


def standing_pauses(tx: Transaction, at: datetime) -> list[Matter]:
    """Find what people have paused until somebody ends it."""
    return [matter for matter in pauses(tx, at) if matter.deadline is None]


def freezes(tx: Transaction, at: datetime) -> list[Matter]:
    """Find the freezes that are in force."""
    return list(_of_kind(tx, at, MatterKind.FROZEN, GateKind.FREEZE))


def approvals(tx: Transaction, _: datetime) -> list[Matter]:
    """Find the sign-offs that are wanted; those that end a hold are told of with the hold."""
    return [_approval(one) for one in _wanted(tx)]


def pressing_approvals(tx: Transaction, at: datetime) -> list[Matter]:
    """Find the sign-offs without which something waits now or within a day, or that are taken for a day only."""
    return [_approval(one) for one in _wanted(tx) if _is_pressing(one, at)]


def _wanted(tx: Transaction) -> Iterator[Asking]:
    return (one for one in waiting_in(tx) if one.asked.subject is not SignOffSubject.HOLD)


def _is_pressing(asking: Asking, at: datetime) -> bool:
    if asking.asked.subject is SignOffSubject.INIT and not asking.asked.is_early:
        return True  # an init is never due later
    ends = (asking.due_at, asking.deadline)
    return any(end is not None and end <= at + _PRESSING for end in ends)


def _of_kind(tx: Transaction, at: datetime, kind: MatterKind, of_gate: GateKind) -> Iterator[Matter]:
    shut = [gate.id for gate in gates_in_force(tx, at) if gate.kind is of_gate and not gate.is_hold]
    if not shut:
        return
    gates = gates_by_id(tx, shut)
    numbers = {gate.batch_id for gate in gates if gate.batch_id is not None}
    batches = {batch.id: batch for batch in batches_by_id(tx, numbers)}
    names = _phases_of(tx, gates)
    dues = next_dues(tx, numbers)
    for gate in gates:
        batch = batches.get(gate.batch_id or 0)
        name, due_at = names.get(gate.phase_execution_id or 0, (None, None))
        deadline = gate.shut_until if kind in _ENDED_BY_TIME else due_at or dues.get(gate.batch_id or 0)
        yield _gate(gate, kind, batch, name, deadline)


_ENDED_BY_TIME = (MatterKind.PAUSED, MatterKind.FROZEN)


def _phases_of(tx: Transaction, gates: Collection[GateRow]) -> Mapping[int, tuple[str, datetime | None]]:
    numbers = {gate.phase_execution_id for gate in gates if gate.phase_execution_id is not None}
    return {phase.id: (phase.phase_name, phase.due_at) for phase in phases_by_id(tx, numbers)}


def _gate(
    gate: GateRow, kind: MatterKind, batch: BatchRow | None, phase: str | None, deadline: datetime | None
) -> Matter:
    subject = _about(gate) if phase is None else f"phase '{phase}' of batch {gate.batch_id}"
    told, command = {
        MatterKind.LATE: (f"{_capital(subject)} is late", f"gate open {gate.id}"),
        MatterKind.BUDGET: (f"Too many have failed in {subject}", f"gate open {gate.id} --allow 0"),
        MatterKind.PAUSED: (f"{_capital(subject)} is paused by {gate.shut_by}", f"resume --gate {gate.id}"),
        MatterKind.FROZEN: (f"{_capital(subject)} is frozen by {gate.shut_by}", f"freeze remove {gate.id}"),
    }[kind]
    return Matter(
        kind,
        told,
        gate.reason,
        gate.shut_from,
        "/batches" if gate.batch_id is None else f"/batches/{gate.batch_id}",
        f"matoolkit {command} --reason TEXT",
        gate.batch_id,
        batch.batch_start_time if batch else None,
        gate.runbook_name or (batch.runbook_name if batch else None),
        deadline=deadline,
    )


def _about(gate: GateRow) -> str:
    subject = subject_of(gate)
    return "everything" if subject == Subject() else str(subject)


def _approval(asking: Asking) -> Matter:
    batch, asked = asking.batch, asking.asked
    return Matter(
        MatterKind.APPROVAL,
        f"{_capital(asking.name)} waits for approval",
        f"{asking.waits or 'it waits for sign-offs'}; {counted(asking.members, 'member')}",
        asked.opens_at,
        f"/batches/{batch.id}",
        asked.command("show"),
        *(batch.id, batch.batch_start_time, batch.runbook_name),
        deadline=asking.deadline,
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def dead_letters(tx: Transaction, _: datetime) -> list[Matter]:
    """Find the messages that could not be handled, by what they are."""
    return [_letter(group) for group in open_letters(tx)]


def _letter(group: LetterGroup) -> Matter:
    return Matter(
        MatterKind.DEAD_LETTER,
        f"{counted(group.count, 'message')} of the kind {group.message_type} could not be handled",
        f"by {group.subscription}, delivered {counted(group.deliveries, 'time')} at most: {group.reason}",
        group.first_at,
        "/dead-letters",
        "matoolkit dead-letter list",
    )


_LOOKS: Sequence[Callable[[Transaction, datetime], list[Matter]]] = (
    held_batches,
    late_phases,
    budgets,
    approvals,
    pauses,
    freezes,
    dead_letters,
)
