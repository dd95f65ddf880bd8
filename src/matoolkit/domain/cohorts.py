"""Who goes first, how many at once, and when too many have failed (rules C1 to C5)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from matoolkit.domain.doors import Door, PhaseDoor, Work
from matoolkit.domain.why import EndedBy, Why, WhyKind
from matoolkit.records import record
from matoolkit.words import counted

if TYPE_CHECKING:
    from matoolkit.runbook.model import Pilot, Rollout

_YES = frozenset({"true", "yes", "y", "1"})


def is_yes(value: Any) -> bool:
    """Tell whether a cell says yes: true, 1, or one of a few words in any case; anything else is no."""
    if isinstance(value, str):
        return value.strip().casefold() in _YES
    return isinstance(value, bool | int | float) and value == 1


def pilots_by_column(column: str, members: Iterable[tuple[int, Mapping[str, Any]]]) -> list[int]:
    """Return the members whose rows say that they are pilots (rule C1)."""
    name = column.casefold()
    return [number for number, data in members if any(is_yes(data[key]) for key in data if key.casefold() == name)]


def number_of_pilots(pilot: "Pilot", members: int) -> int:
    """Return how many of so many members are pilots; percent are rounded up, and one goes first at least (rule C1)."""
    if pilot.count is not None:
        return min(pilot.count, members)
    return -(-members * (pilot.percent or 0) // 100)


@record
class Pilots:
    """How far the pilots of a batch are in a phase: `open` have yet to end it; `done_at` is when the last had."""

    count: int
    open: int
    done_at: datetime | None


@dataclass(slots=True, eq=False)
class Places:
    """How many members may be in a phase at once, and how many places are free; who takes one counts it down."""

    at_once: int
    free: int


def pilots_first(door: Door, work: Work, phase: PhaseDoor) -> Why | None:
    """Keep those who are no pilots from beginning before the pilots have ended, and for some time more (rule C2)."""
    pilots, rollout = phase.pilots, phase.rules.rollout
    if door is not Door.START or work.member_key is None or work.is_pilot or pilots is None or rollout is None:
        return None
    if not pilots.count:
        return None
    if pilots.open or pilots.done_at is None:
        left = pilots.open or pilots.count
        open_ones = f"{left:,} of {counted(pilots.count, 'pilot')} {'has' if left == 1 else 'have'}"
        return Why(WhyKind.PILOT, f"pilots go first, and {open_ones} not ended phase '{phase.rules.name}'")
    until = pilots.done_at + rollout.soak if rollout.soak is not None else pilots.done_at
    if phase.at >= until:
        return None
    told = f"the pilots have ended phase '{phase.rules.name}', and the others begin at {until:%Y-%m-%d %H:%M} UTC"
    return Why(WhyKind.PILOT, told, pilots.done_at, until, EndedBy.TIME)


def is_soak_over(done_at: datetime | None, soak: timedelta | None, woken_at: datetime | None, at: datetime) -> bool:
    """Tell whether the soak after the last pilot is over, and nobody was woken since (rule C2)."""
    if done_at is None or soak is None:
        return False
    ends = done_at + soak
    return ends <= at and (woken_at is None or woken_at < ends)


def so_many_at_once(_door: Door, work: Work, phase: PhaseDoor) -> Why | None:
    """Keep those who have no place in a phase, whatever they would do in it, while none is free (rule C5)."""
    places = phase.places
    if places is None or work.member_key is None or work.has_place or places.free > 0:
        return None
    told = f"{counted(places.at_once, 'member')} may be in phase '{phase.rules.name}' at once, and no place is free"
    return Why(WhyKind.AT_ONCE, told)


@record
class Tally:
    """How far the members of a phase are, counted from rows in their present epochs (rules C2 and C3).

    Failed pilots are those who failed in the phase, and those who were undone or excluded after they had steps in it.
    Pilots are over when all who are still there have ended it.
    """

    failed: int = 0
    pilots: int = 0
    pilots_failed: int = 0
    pilots_through: int = 0
    pilots_over: bool = False


def too_many(phase: str, rollout: "Rollout", members: int, tally: Tally, opened_for: int | None = None) -> str | None:
    """Say why nobody else begins a phase, if too many have failed in it (rules C2 to C4).

    `members` were active when it began. Once a person has opened its budget, up to `opened_for` may have failed, or as
    many as the runbook says if that is more; what became of the pilots is then decided.
    """
    limit = rollout.max_failures
    allowed = None if limit is None else limit.of(members)
    if opened_for is not None:
        allowed = max(opened_for, allowed or 0)
    elif rollout.pilot_first and (why := _pilots_failed(phase, rollout, tally)):
        return why
    if allowed is None or tally.failed <= allowed:
        return None
    members_have = f"{counted(tally.failed, 'member')} {_has(tally.failed)}"
    return f"{members_have} failed in phase '{phase}', and {_may(allowed)}"


def _pilots_failed(phase: str, rollout: "Rollout", tally: Tally) -> str | None:
    limit = rollout.max_failures
    allowed = 0 if limit is None else limit.of(tally.pilots)
    if tally.pilots_failed > allowed:
        failed = f"{tally.pilots_failed} of {counted(tally.pilots, 'pilot')} {_has(tally.pilots_failed)}"
        return f"{failed} failed in phase '{phase}', and {_may(allowed)}"
    if tally.pilots and tally.pilots_over and not tally.pilots_through:
        return f"no pilot of {tally.pilots} went through phase '{phase}'"
    return None


def _has(number: int) -> str:
    return "has" if number == 1 else "have"


def _may(allowed: int) -> str:
    return f"{allowed or 'none'} may"
