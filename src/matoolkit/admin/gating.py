"""Pausing and resuming, and opening gates by their number (rules G2, G4 and G8)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from shlex import quote

import orjson

from matoolkit.admin.catalogue import known_workers
from matoolkit.admin.queries import existing_batch, latest_runbook
from matoolkit.announcing.gatekeeping import TakenBack, take_back_all, wake_all
from matoolkit.domain.doors import Door, Work
from matoolkit.domain.gates import Gate, GateKind
from matoolkit.domain.keys import MAX_KEY_LENGTH, folded, is_usable_key
from matoolkit.errors import (
    GateIsHold,
    GateOpened,
    InvalidPause,
    NobodyToPause,
    NoBudget,
    NothingPaused,
    UnknownGate,
    UnknownWorker,
    UnusableKey,
    WrongBatchStatus,
)
from matoolkit.ports import Publisher
from matoolkit.store import Store, Transaction
from matoolkit.store.audit import NewAuditEntry, record_changes
from matoolkit.store.batches import lock_batches
from matoolkit.store.cohorts import allow_failures, failures_in
from matoolkit.store.enrolments import places_of_keys
from matoolkit.store.gatekeeping import (
    GateRow,
    NewGate,
    batches_without_work,
    gates_by_id,
    gates_page,
    open_gates,
    shut_gate,
    unopened_gates,
)
from matoolkit.store.gates import gates_in_force
from matoolkit.store.jobsout import has_had_work
from matoolkit.store.lateness import lift_limits


@dataclass(frozen=True, slots=True)
class Subject:
    """What is paused: a batch, a runbook, a worker, a person of a runbook; without any of them everything."""

    batch_id: int | None = None
    runbook_name: str | None = None
    worker_id: str | None = None
    member_key: str | None = None

    def __str__(self) -> str:
        """Name it as a command does."""
        if self.batch_id is not None:
            return f"batch {self.batch_id}"
        if self.member_key is not None:
            return f"member {self.runbook_name} {quote(self.member_key)}"
        if self.runbook_name is not None:
            return f"runbook {self.runbook_name}"
        return "all" if self.worker_id is None else f"worker {self.worker_id}"


@dataclass(frozen=True, slots=True)
class Paused:
    """A gate that was shut, the jobs that were taken back, and those that are with workers and finish."""

    gate: GateRow
    jobs: TakenBack


@dataclass(frozen=True, slots=True)
class Resumed:
    """The gates that were opened, and those that keep the same subject still."""

    opened: Sequence[GateRow]
    still: Sequence[Gate]


def subject_of(gate: GateRow | Gate) -> Subject:
    """Return what a gate covers."""
    key = gate.member_key if isinstance(gate, GateRow) else gate.member_key_fold
    return Subject(gate.batch_id, gate.runbook_name, gate.worker_id, key)


def pause(
    store: Store,
    publisher: Publisher,
    subject: Subject,
    *,
    by: str,
    reason: str,
    let_finish: bool = False,
    until: datetime | None = None,
) -> Paused:
    """Shut a gate, and take back what has left and nobody has received; after that nothing covered leaves."""
    gate = shut_pause(store, subject, by=by, reason=reason, let_finish=let_finish, until=until)
    jobs = take_back_all(store, publisher, gate)
    # Somebody else may have opened it meanwhile, and the person who paused is told so.
    with store.reading() as tx:
        return Paused(existing_gate(tx, gate.id), jobs)


def shut_pause(
    store: Store, subject: Subject, *, by: str, reason: str, let_finish: bool = False, until: datetime | None = None
) -> GateRow:
    """Shut the gate of a pause: no job leaves, or if what runs is to finish, nothing begins."""
    with store.transaction() as tx:
        at = tx.time()
        if until is not None and until <= at:
            raise InvalidPause(f"{until:%Y-%m-%d %H:%M} UTC is past", "give a time that is still to come")
        named = existing_subject(tx, subject)
        if let_finish and named.worker_id is not None:
            raise InvalidPause("a worker's jobs leave or wait; nothing begins there", "leave `let finish` out")
        fold = None if named.member_key is None else folded(named.member_key)
        new = NewGate(
            kind=GateKind.PAUSE,
            reach=Door.START if let_finish else Door.SEND,
            worker_id=named.worker_id,
            runbook_name=named.runbook_name,
            batch_id=named.batch_id,
            phase_execution_id=None,
            member_key=named.member_key,
            member_key_fold=fold,
            shut_from=at,
            shut_until=until,
            shut_by=by,
            reason=reason,
        )
        (gate,) = gates_by_id(tx, [shut_gate(tx, new)])
        record_changes(tx, [audit_entry(gate, "gate.shut", by, reason)], at)
        return gate


def resume(store: Store, publisher: Publisher, subject: Subject, *, by: str, reason: str | None) -> Resumed:
    """Open every pause of exactly this subject, and wake what waited; other gates stay shut, and are named."""
    with store.transaction() as tx:
        named = _named(tx, subject)
        opened = _opened(tx, [gate.id for gate in unopened_gates(tx) if _is_about(gate, named)], by, reason)
        # Somebody else may have opened them at the same moment.
        if not opened:
            latest = gates_page(tx, is_unopened=False, batch_id=named.batch_id, kind=GateKind.PAUSE)
            ended = next(((gate.opened_by, gate.opened_at) for gate in latest if _is_about(gate, named)), None)
            raise NothingPaused(str(named), [gate.id for gate in _covering(tx, named)], ended)
    return _resumed(store, publisher, opened, named)


def open_gate(
    store: Store, publisher: Publisher, gate_id: int, *, by: str, reason: str | None, allow: int | None = None
) -> Resumed:
    """Open one gate, and wake what waited; a budget is shut again when more than `allow` members fail after that."""
    with store.transaction() as tx:
        gate = existing_gate(tx, gate_id)
        if gate.hold_key is not None:
            raise GateIsHold(gate_id, gate.batch_id)
        if gate.batch_id is not None:
            lock_batches(tx, [gate.batch_id])
        if gate.kind is GateKind.BUDGET:
            _allow(tx, gate, allow or 0)
        elif allow is not None:
            raise NoBudget(gate_id, gate.kind)
        opened = _opened(tx, [gate_id], by, reason)
        if not opened:
            raise GateOpened(gate_id, gate.opened_by)
        named = _named(tx, subject_of(gate))
    return _resumed(store, publisher, opened, named)


def _allow(tx: Transaction, gate: GateRow, more: int) -> None:
    """Note how many may have failed in all; they are counted under the lock of the batch (rules C4 and M5)."""
    if gate.phase_execution_id is not None:
        failed = failures_in(tx, [gate.phase_execution_id]).get(gate.phase_execution_id, 0)
        allow_failures(tx, gate.id, failed + more)


def existing_gate(tx: Transaction, gate_id: int) -> GateRow:
    """Return a gate, or refuse a number that no gate has."""
    found = gates_by_id(tx, [gate_id])
    if not found:
        raise UnknownGate(gate_id)
    return found[0]


def _opened(tx: Transaction, ids: Sequence[int], by: str, reason: str | None) -> list[GateRow]:
    at = tx.time()
    opened = gates_by_id(tx, open_gates(tx, ids, at, by, reason))
    # Who opens the gate of a late phase lets it begin however late it is (rule K5).
    late = [gate.phase_execution_id for gate in opened if gate.kind is GateKind.LATE]
    lift_limits(tx, [phase_id for phase_id in late if phase_id is not None])
    record_changes(tx, [audit_entry(gate, "gate.open", by, reason) for gate in opened], at)
    return opened


def _resumed(store: Store, publisher: Publisher, opened: Sequence[GateRow], subject: Subject) -> Resumed:
    for gate in opened:
        # A freeze that has not begun has kept nothing.
        if gate.swept_at is None:
            wake_all(store, publisher, gate)
    with store.reading() as tx:
        return Resumed(opened, _covering(tx, subject))


def existing_subject(tx: Transaction, subject: Subject) -> Subject:
    """Name a subject as it is stored, and refuse one that is not there or has ended."""
    named = _named(tx, subject)
    if named.batch_id is not None and batches_without_work(tx, [named.batch_id]):
        status = existing_batch(tx, named.batch_id).status
        raise WrongBatchStatus(named.batch_id, status, "nothing of it is under way that could be stopped")
    if named.worker_id is not None:
        known = known_workers(tx)
        if named.worker_id not in known and not has_had_work(tx, named.worker_id):
            raise UnknownWorker(named.worker_id, known)
    if named.member_key is not None and named.runbook_name is not None:
        if not is_usable_key(named.member_key):
            raise UnusableKey(named.member_key, MAX_KEY_LENGTH)
        if not places_of_keys(tx, named.runbook_name, [folded(named.member_key)]):
            raise NobodyToPause(named.runbook_name, named.member_key)
    return named


def _named(tx: Transaction, subject: Subject) -> Subject:
    if sum(part is not None for part in (subject.batch_id, subject.worker_id, subject.runbook_name)) > 1:
        raise InvalidPause(
            "a pause or a freeze is about one thing", "name a batch, a runbook, a worker, or a person of a runbook"
        )
    if subject.member_key is not None and subject.runbook_name is None:
        raise InvalidPause("a person is paused in a runbook", "name the runbook too")
    if subject.batch_id is not None:
        existing_batch(tx, subject.batch_id)
    name = None if subject.runbook_name is None else latest_runbook(tx, subject.runbook_name).name
    key = None if subject.member_key is None else subject.member_key.strip()
    return Subject(subject.batch_id, name, subject.worker_id, key)


def _is_about(gate: GateRow, subject: Subject) -> bool:
    fold = None if subject.member_key is None else folded(subject.member_key)
    named = (gate.kind, gate.batch_id, gate.runbook_name, gate.worker_id, gate.member_key_fold)
    return named == (GateKind.PAUSE, subject.batch_id, subject.runbook_name, subject.worker_id, fold)


def _covering(tx: Transaction, subject: Subject) -> list[Gate]:
    """Return the gates in force that cover all of a subject."""
    name = subject.runbook_name
    if subject.batch_id is not None:
        name = existing_batch(tx, subject.batch_id).runbook_name
    work = Work(name or "", subject.batch_id or 0, subject.worker_id, subject.member_key)
    # A gate of a phase keeps a part of its batch.
    return [
        gate
        for gate in gates_in_force(tx, tx.time())
        if gate.covers(work) or (gate.phase_execution_id is not None and gate.batch_id == subject.batch_id)
    ]


def audit_entry(gate: GateRow, action: str, by: str, reason: str | None) -> NewAuditEntry:
    """Say what a person did to a gate."""
    until = gate.shut_until.isoformat() if gate.shut_until is not None else None
    after: dict[str, object] = {
        "kind": gate.kind,
        "subject": str(subject_of(gate)),
        "reach": gate.reach,
        "until": until,
    }
    if gate.phase_execution_id is not None:
        after |= {"phase": gate.phase_execution_id, "allowed": gate.allowed}
    if gate.kind is GateKind.FREEZE:
        after["from"] = gate.shut_from.isoformat()
    return NewAuditEntry(
        actor=by,
        action=action,
        subject_type="gate",
        subject_id=str(gate.id),
        runbook_name=gate.runbook_name,
        batch_id=gate.batch_id,
        after_json=orjson.dumps(after).decode(),
        reason=reason,
    )
