"""The next three things that happen to a batch or a member, with their times (rule X4)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from matoolkit.admin.scene import Scene
from matoolkit.domain.gates import may_be_about
from matoolkit.domain.why import Why, WhyKind
from matoolkit.store.batches import BatchRow
from matoolkit.store.phases import PhaseRow
from matoolkit.words import gap_to

_MOST = 3
_ENDS = {
    WhyKind.PAUSE: "a pause ends",
    WhyKind.FREEZE: "a freeze ends",
    WhyKind.WINDOW: "the window opens",
    WhyKind.PILOT: "the others may begin",
    WhyKind.APPROVAL: "the time for approval ends; what is not approved is late then",
    WhyKind.JOB_OUT: "the job counts as lost if no answer has come",
    WhyKind.RETRY: "it is tried again",
    WhyKind.POLL: "it is given up if it is not done",
}
_FIRST_ENDS = {
    WhyKind.JOB_OUT: "the first job counts as lost if no answer has come",
    WhyKind.RETRY: "the first is tried again",
    WhyKind.POLL: "the first is given up if it is not done",
}


@dataclass(frozen=True, slots=True)
class Coming:
    """Something that happens by itself: when, where that is relative to T, and what."""

    at: datetime
    offset: str | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Ending:
    """A reason to wait whose end may be known, how many members have it if they are many, and in which phase."""

    why: Why
    phase: PhaseRow | None = None
    members: int = 1


def what_comes(scene: Scene, batch: BatchRow, endings: Iterable[Ending], phases: Sequence[PhaseRow]) -> list[Coming]:
    """Return the first things to come, of what is waited for and of phases that are still to begin."""
    found = [*_of_phases(phases, scene.at), *_of_whys(endings, scene.at), *_of_freezes(scene, batch)]
    ahead = sorted({one for one in found if one[0] > scene.at})
    return [Coming(at, _offset(batch.batch_start_time, at), told) for at, told in ahead[:_MOST]]


def _offset(start: datetime | None, at: datetime) -> str | None:
    if start is None:
        return None
    return "T-0" if at == start else gap_to(start, at)


def _of_phases(phases: Sequence[PhaseRow], at: datetime) -> Iterator[tuple[datetime, str]]:
    for phase in phases:
        if phase.due_at is not None:
            yield phase.due_at, f"{phase.phase_name} is due"
        # Of a phase that is not due nobody expects that something keeps it for so long.
        if phase.late_after is not None and phase.due_at is not None and phase.due_at <= at:
            yield phase.late_after, f"{phase.phase_name} is late, and begins only if a person lets it"


def _of_whys(endings: Iterable[Ending], at: datetime) -> Iterator[tuple[datetime, str]]:
    for one in _first_of_work(one for one in endings if one.why.until is not None and one.why.until > at):
        kind, until = one.why.kind, one.why.until
        if until is None or kind is WhyKind.NOT_DUE or (kind is WhyKind.APPROVAL and _is_late_before(one.phase, until)):
            continue
        told = _FIRST_ENDS.get(kind) if one.members > 1 else None
        told = told or _ENDS.get(kind, "it ends")
        # A stored gate may keep several phases, and ends once.
        phase = one.phase if one.why.gate_id is None else None
        yield until, f"{phase.phase_name}: {told}" if phase is not None else told


def _first_of_work(endings: Iterable[Ending]) -> list[Ending]:
    """Leave of the work of each phase that waits for the same, whatever its step, what ends first."""
    first: dict[tuple[object, ...], Ending] = {}
    others: list[Ending] = []
    for one in endings:
        if one.why.kind not in _FIRST_ENDS or one.why.until is None:
            others.append(one)
            continue
        same = one.why.kind, one.phase.id if one.phase is not None else None
        known = first.get(same, one)
        ends = min(one.why.until, known.why.until or one.why.until)
        members = one.members + (known.members if known is not one else 0)
        first[same] = Ending(replace(one.why, until=ends), one.phase, members)
    return [*others, *first.values()]


def _is_late_before(phase: PhaseRow | None, at: datetime) -> bool:
    return phase is not None and phase.late_after is not None and phase.late_after <= at


def _of_freezes(scene: Scene, batch: BatchRow) -> Iterator[tuple[datetime, str]]:
    """Tell of gates that are yet to shut."""
    shut = {gate.id for gate in scene.gates.in_force}
    for gate in scene.unopened:
        is_mine = may_be_about(gate, batch.id, batch.runbook_name)
        if gate.id not in shut and is_mine and gate.member_key_fold is None and gate.worker_id is None:
            yield gate.shut_from, f"a {gate.kind} begins: {gate.reason}"
