"""Gates: whatever keeps work from going on, decided and explained in one place (rules G1 to G3).

There are two doors. Work that begins goes through the start door, and every job through the send door. A gate shuts one
of them for what it covers; one that shuts the send door shuts the start door too.

Stored gates are rows that somebody shut. Derived gates follow from what a phase declares and from how far others are.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, TypeAlias

from matoolkit.domain.cohorts import pilots_first, so_many_at_once
from matoolkit.domain.doors import Door, PhaseDoor, Work
from matoolkit.domain.holds import HoldKind
from matoolkit.domain.signoff import approval, awaits
from matoolkit.domain.why import EndedBy, Why, WhyKind
from matoolkit.domain.windows import outside_window, times_kept_by_window
from matoolkit.records import record


class GateKind(StrEnum):
    """What shut a gate; gates are told of in this order."""

    REMOVALS = "removals"
    CALLED_OFF = "called_off"
    RESCHEDULE = "reschedule"
    INIT = "init"
    LATE = "late"
    REPEAT = "repeat"
    BUDGET = "budget"
    PAUSE = "pause"
    FREEZE = "freeze"
    WINDOW = "window"
    APPROVAL = "approval"
    PILOT = "pilot"
    AT_ONCE = "at_once"


HOLDS = frozenset(GateKind(kind) for kind in HoldKind)
_ORDER = {WhyKind(kind): place for place, kind in enumerate(GateKind)}


@record
class Gate:
    """A stored gate in force. It covers what agrees with all that its scope names; one that names nothing, everything.

    A person is a runbook and a key, so that the gate follows moves and epochs (rule G2). A gate of a phase covers that
    phase and the later ones of its version. `hold_key` is set for what T6 holds a batch for.
    """

    id: int
    kind: GateKind
    reach: Door
    worker_id: str | None
    runbook_name: str | None
    member_key_fold: str | None
    batch_id: int | None
    shut_from: datetime
    shut_until: datetime | None
    shut_by: str
    reason: str
    opened_at: datetime | None = None
    phase_execution_id: int | None = None
    hold_key: str | None = None

    @property
    def is_hold(self) -> bool:
        """Whether it is what T6 holds a batch for, and not a phase that is too late."""
        return self.hold_key is not None

    def covers(self, work: Work) -> bool:
        """Tell whether the gate is about this work."""
        return (
            self.worker_id in (None, work.worker_id)
            and self.runbook_name in (None, work.runbook_name)
            and self.batch_id in (None, work.batch_id)
            and (self.member_key_fold is None or self.member_key_fold == work.member_key_fold)
            and (self.phase_execution_id is None or _has_reached(work.phase, self.phase_execution_id))
        )


# The narrowest that a gate names; few gates are about the same.
_Subject: TypeAlias = tuple[str, object]


@dataclass(slots=True)
class Gates:
    """The gates that are in force at one moment (rule G3), and those that follow from what phases declare."""

    in_force: Sequence[Gate] = ()
    _by_subject: dict[_Subject, list[Gate]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for gate in self.in_force:
            self._by_subject.setdefault(_subject(gate), []).append(gate)

    def may_keep(self, phase: PhaseDoor | None) -> bool:
        """Tell whether any gate could keep work of a phase; mostly none can, and nobody needs to ask further."""
        return bool(self._by_subject) or (phase is not None and phase.has_gates)

    def at(self, door: Door, work: Work) -> list[Why]:
        """Say why work waits before a door, gate by gate in their order; it is open if there are none (rule G1)."""
        if not self.may_keep(work.phase) and work.init is None:
            return []
        shut = [why_of(gate) for gate in self._about(work) if _shuts(gate, door, work) and gate.covers(work)]
        if (phase := work.phase) is not None and phase.has_gates:
            shut += [why for derived in _DERIVED if (why := derived(door, work, phase)) is not None]
        if door is Door.START and work.init is not None and (waits := awaits(work.init)) is not None:
            shut.append(waits)
        return sorted(shut, key=lambda why: (_ORDER[why.kind], why.gate_id or 0))

    def hold_of(self, batch_id: int) -> Gate | None:
        """Return the hold that keeps the members and the version of a batch as they are, if there is one (rule T6)."""
        of_batch = self._by_subject.get(("batch", batch_id), ())
        return next((gate for gate in of_batch if gate.is_hold), None)

    def _about(self, work: Work) -> Iterator[Gate]:
        subjects = {
            ("batch", work.batch_id),
            ("member", work.member_key_fold),
            ("runbook", work.runbook_name),
            ("worker", work.worker_id),
            ("all", None),
        }
        for subject in subjects:
            yield from self._by_subject.get(subject, ())


class _Scope(Protocol):
    @property
    def batch_id(self) -> int | None: ...

    @property
    def runbook_name(self) -> str | None: ...


def may_be_about(gate: _Scope, batch_id: int, runbook_name: str) -> bool:
    """Tell whether a gate may keep something in a batch: all of it, a phase, a person, or a worker's jobs."""
    return gate.batch_id in (None, batch_id) and gate.runbook_name in (None, runbook_name)


def _subject(gate: Gate) -> _Subject:
    if gate.batch_id is not None:
        return "batch", gate.batch_id
    if gate.member_key_fold is not None:
        return "member", gate.member_key_fold
    if gate.runbook_name is not None:
        return "runbook", gate.runbook_name
    return ("worker", gate.worker_id) if gate.worker_id is not None else ("all", None)


def why_of(gate: Gate) -> Why:
    """Say why work waits before a stored gate."""
    ended_by, who = EndedBy.PERSON, "Operator"
    until = f" until {gate.shut_until:%Y-%m-%d %H:%M} UTC" if gate.shut_until is not None else ""
    if gate.is_hold:
        told = f"held until a person approves: {gate.reason}"
        who, command = "Admin", f"matoolkit hold show {gate.batch_id}"
    elif gate.kind is GateKind.PAUSE:
        told = f"paused by {gate.shut_by} at {gate.shut_from:%Y-%m-%d %H:%M} UTC{until}: {gate.reason}"
        command = f"matoolkit resume --gate {gate.id} --reason TEXT"
    elif gate.kind is GateKind.FREEZE:
        told = f"frozen by {gate.shut_by}{until}: {gate.reason}"
        command = f"matoolkit freeze remove {gate.id} --reason TEXT"
    elif gate.kind is GateKind.LATE:
        told, command = f"late: {gate.reason}", f"matoolkit gate open {gate.id} --reason TEXT"
    else:
        told, command = gate.reason, f"matoolkit gate open {gate.id} --allow 0 --reason TEXT"
    return Why(
        WhyKind(gate.kind),
        told,
        gate.shut_from,
        gate.shut_until,
        EndedBy.TIME if gate.shut_until is not None else ended_by,
        who,
        command,
        gate.id,
    )


def kept_phases(gates: Gates, due: Iterable[PhaseDoor]) -> dict[int, list[Why]]:
    """Say why phases that are due do not begin, by their ids; the others begin.

    None begins while an earlier one of its batch is kept: what checks a cutover never overtakes it (rule G9).
    """
    kept: dict[int, list[Why]] = {}
    first: dict[int, PhaseDoor] = {}
    for phase in sorted(due, key=lambda phase: (phase.batch_id, phase.order)):
        if (earlier := first.get(phase.batch_id)) is not None:
            kept[phase.id] = [Why(WhyKind.EARLIER_PHASE, f"{earlier.rules.name} comes first, and it waits")]
        elif shut := gates.at(Door.START, Work(phase.runbook_name, phase.batch_id, phase=phase)):
            first[phase.batch_id] = phase
            kept[phase.id] = shut
    return kept


def time_kept(gates: Iterable[Gate], work: Work, since: datetime, until: datetime) -> timedelta:
    """Return for how long of a time gates kept the jobs of work from leaving; gates may overlap (rule G7)."""
    kept, reached = timedelta(), since
    for begins, ends in sorted([*_times_of(gates, work, until), *times_kept_by_window(work, since, until)]):
        if max(begins, reached) < ends:
            kept, reached = kept + (ends - max(begins, reached)), ends
    return kept


def _times_of(gates: Iterable[Gate], work: Work, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    for gate in gates:
        if gate.reach is Door.SEND and gate.covers(work):
            yield gate.shut_from, min(end for end in (until, gate.shut_until, gate.opened_at) if end is not None)


def _shuts(gate: Gate, door: Door, work: Work) -> bool:
    # A hold keeps phases from beginning; an init that was asked for runs (rule T6).
    if work.is_init and gate.is_hold:
        return False
    return door is Door.START or gate.reach is Door.SEND


def _has_reached(phase: PhaseDoor | None, phase_id: int) -> bool:
    return phase is not None and phase_id in phase.reached


# What follows from what a phase declares; each says why it keeps work, or nothing. Asked only for phases with gates.
_DERIVED: Sequence[Callable[[Door, Work, PhaseDoor], Why | None]] = (
    outside_window,
    approval,
    pilots_first,
    so_many_at_once,
)
