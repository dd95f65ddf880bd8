"""Phases that could begin only too late: they wait for a person instead (rule K5)."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from matoolkit.domain.doors import PhaseDoor
from matoolkit.domain.gates import Gate, GateKind
from matoolkit.domain.lateness import is_too_late
from matoolkit.domain.states import PhaseStatus
from matoolkit.store.batches import BatchRow
from matoolkit.store.lateness import LateGate, NewLateGate, late_gates, shut_late_gates
from matoolkit.store.phases import PhaseRow
from matoolkit.store.sql.transaction import Transaction

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TooLate:
    """A phase that may not begin by itself any more, and why."""

    phase: PhaseRow
    reason: str


def past_their_limit(phases: Iterable[PhaseRow], at: datetime) -> list[TooLate]:
    """Return the phases whose `max_delay` is over; whatever kept them does not matter."""
    return [
        TooLate(
            phase,
            f"phase '{phase.phase_name}' was due at {phase.due_at:%Y-%m-%d %H:%M} UTC, and could begin until"
            f" {phase.late_after:%Y-%m-%d %H:%M} UTC",
        )
        for phase in phases
        if is_too_late(phase.late_after, at)
    ]


def not_approved_in_time(phases: Iterable[PhaseRow], doors: Mapping[int, PhaseDoor]) -> list[TooLate]:
    """Return the phases whose time to be signed off has ended before enough people had (rule S7)."""
    late = []
    for phase in phases:
        asked = doors[phase.id].sign_offs
        if asked is not None and asked.ends_at is not None and asked.is_over and not asked.is_met:
            until = f"{asked.ends_at:%Y-%m-%d %H:%M} UTC"
            late.append(
                TooLate(phase, f"phase '{phase.phase_name}' was not approved until {until}: {asked.progress()}")
            )
    return late


def shut_late(
    tx: Transaction, late: Iterable[TooLate], batches: Mapping[int, BatchRow], in_force: Sequence[Gate]
) -> list[Gate]:
    """Shut a gate for each phase of locked batches that is too late and has none, and return all in force then."""
    standing = {gate.phase_execution_id for gate in in_force if gate.kind is GateKind.LATE}
    at = tx.time()
    new = {one.phase.id: _gate(one, at) for one in late if one.phase.id not in standing}
    for gate in new.values():
        about = {"runbook": batches[gate.batch_id].runbook_name, "batch": gate.batch_id}
        log.warning("late, and waits for a person: %s", gate.reason, extra=about)
    return [*in_force, *shut_late_gates(tx, list(new.values()))]


def without_subject(tx: Transaction, at: datetime) -> list[int]:
    """Return the late gates that stand for nothing any more: the phase is due at another time, or cannot begin."""
    return [gate.id for gate in late_gates(tx) if _is_over(gate, at)]


def _gate(late: TooLate, at: datetime) -> NewLateGate:
    phase = late.phase
    shown = orjson.dumps({"phase": phase.phase_name, "dueAt": phase.due_at}).decode()
    return NewLateGate(phase.batch_id, phase.id, at, at, late.reason, shown)


def _is_over(gate: LateGate, at: datetime) -> bool:
    if gate.status is not PhaseStatus.PENDING:
        return True
    return gate.is_moved and gate.due_at is not None and gate.due_at > at
