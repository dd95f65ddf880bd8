"""Decides where a failed member begins when a person retries it (rule O14)."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

from matoolkit.domain.keys import folded
from matoolkit.domain.phaseorder import phase_order
from matoolkit.domain.states import FAILED_STEPS, UNSUCCESSFUL_STEPS, StepStatus
from matoolkit.records import record


class VersionChoice(StrEnum):
    """Which version a person wants to run, if it is not to be the one that follows from the batch."""

    CURRENT = "current"
    ACTIVE = "active"


class DataChoice(StrEnum):
    """Which data retried members take."""

    LAST_READING = "last_reading"
    REFRESHED = "refreshed"
    KEPT = "kept"
    FILE = "file"


class LeftOutBecause(StrEnum):
    """Why a failed member is not retried."""

    IN_ANOTHER_BATCH = "in_another_batch"
    EXCLUDED = "excluded"
    NO_ROW = "no_row"
    SET_ASIDE = "set_aside"
    ANOTHER_TIME = "another_time"


@record
class PastPhase:
    """A phase that a batch has or had."""

    id: int
    version: int
    name: str
    offset_minutes: int
    index: int


@record
class PastStep:
    """A step that a member has in its present epoch."""

    id: int
    phase_execution_id: int
    status: StepStatus


@record
class FirstPhase:
    """The phase with which a member begins in an epoch: its place in the order of a version, from 0."""

    version: int
    place: int

    def leaves_out(self, version: int, place: int) -> bool:
        """Tell whether the phase at a place of a version comes before it; it says nothing about other versions."""
        return version == self.version and place < self.place


def first_phase(version: int | None, place: int | None) -> FirstPhase | None:
    """Return a first phase as it is stored; nothing is stored for a member that begins with the first."""
    return None if version is None or place is None else FirstPhase(version, place)


@record
class Past:
    """What a failed member has done in its present epoch."""

    steps: Sequence[PastStep]
    is_undone: bool = False
    first: FirstPhase | None = None


@record
class GoOn:
    """It goes on from where it failed: these steps are open again."""

    steps: Sequence[PastStep]


@record
class BeginAgain:
    """It begins again in a new epoch, with the phase at this place; if its work was undone, without its outputs."""

    place: int
    is_undone: bool = False


Way: TypeAlias = GoOn | BeginAgain


@record
class Retried:
    """The version that runs: its phases in the order in which they run, and with which of them a person begins."""

    version: int
    names: Sequence[str]
    begin_with: str | None = None

    def place_of(self, name: str) -> int | None:
        """Return the place of a phase in the order of the version."""
        folds = [folded(one) for one in self.names]
        return folds.index(folded(name)) if folded(name) in folds else None


def way_on(past: Past, phases: Mapping[int, PastPhase], retried: Retried) -> Way:
    """Decide where a failed member begins.

    A person can only let it begin earlier; phases that it has not done are never left out.
    """
    if past.is_undone:
        return BeginAgain(0, is_undone=True)
    failed_under = {phases[step.phase_execution_id].version for step in past.steps if step.status in FAILED_STEPS}
    if failed_under == {retried.version} and retried.begin_with is None:
        return GoOn([step for step in past.steps if _is_open_again(step, phases, retried.version)])
    done = completed_phases(past, phases)
    place = next((place for place, name in enumerate(retried.names) if folded(name) not in done), len(retried.names))
    wanted = None if retried.begin_with is None else retried.place_of(retried.begin_with)
    return BeginAgain(place if wanted is None else min(place, wanted))


def kept_phases(past: Past, way: Way, phases: Mapping[int, PastPhase], retried: Retried) -> set[str]:
    """Return the folded names of the phases whose finished steps a member does not do again."""
    match way:
        case GoOn():
            return {folded(phases[step.phase_execution_id].name) for step in past.steps} | left_out(past, phases)
        case BeginAgain(place, is_undone):
            return set() if is_undone else {folded(name) for name in retried.names[:place]}


def completed_phases(past: Past, phases: Mapping[int, PastPhase]) -> set[str]:
    """Return the folded names of the phases that a member has completed; the latest version that it met decides."""
    unfinished = {step.phase_execution_id for step in past.steps if step.status is not StepStatus.SUCCEEDED}
    is_done = dict.fromkeys(left_out(past, phases), True)
    for phase in sorted({phases[step.phase_execution_id] for step in past.steps}, key=lambda phase: phase.version):
        is_done[folded(phase.name)] = phase.id not in unfinished
    return {name for name, done in is_done.items() if done}


def left_out(past: Past, phases: Mapping[int, PastPhase]) -> set[str]:
    """Return what a member left out in this epoch, because it had completed it in an earlier one."""
    if past.first is None:
        return set()
    return {folded(phase.name) for phase in _in_order(phases, past.first.version)[: past.first.place]}


def _is_open_again(step: PastStep, phases: Mapping[int, PastPhase], version: int) -> bool:
    return step.status in UNSUCCESSFUL_STEPS and phases[step.phase_execution_id].version == version


def _in_order(phases: Mapping[int, PastPhase], version: int) -> list[PastPhase]:
    mine = [phase for phase in phases.values() if phase.version == version]
    return sorted(mine, key=lambda phase: phase_order(phase.version, phase.offset_minutes, phase.index))
