"""Places of phases in which only so many members may be at once (rule C5).

Nobody takes a place while a pile is worked through. In the end the pile offers those that are free to the first in line
that could go on, so who came with a message has no advantage over who waits. The line is in the order in which members
got their steps of the phase: by their ids, and then who joined or returned.
"""

from collections.abc import Iterable

from matoolkit.domain.cohorts import pilots_first
from matoolkit.domain.doors import Door, PhaseDoor, Work
from matoolkit.domain.states import BatchStatus, PhaseStatus
from matoolkit.orchestrator.agenda import Agenda, Offered
from matoolkit.store.phases import PhaseRow
from matoolkit.store.places import (
    Candidate,
    candidates,
    give_back_places,
    places_taken,
)

# Pages of candidates, so that there are few statements: each is larger than the one before.
_PAGES = (50, 200, 800, 3200)
# Of those who were offered a place some cannot take it. So each round offers more than the one before.
_MORE = 4


def offer_places(agenda: Agenda) -> None:
    """Touch those who may begin because places are free; they take them as they are sent."""
    limited = [one.phase for one in agenda.limited_phases() if one.rollout.at_once is not None]
    if not limited:
        return
    numbers = [phase.id for phase in limited]
    doors = agenda.doors(numbers)
    give_back_places(agenda.tx, numbers)
    taken = places_taken(agenda.tx, numbers)
    for phase in limited:
        places = doors[phase.id].places
        if places is not None:
            places.free = max(0, places.at_once - taken.get(phase.id, 0))
            if places.free:
                agenda.members_to_continue.update(_next(agenda, phase, doors[phase.id], places.free))


def _next(agenda: Agenda, phase: PhaseRow, door: PhaseDoor, free: int) -> list[int]:
    """Return who may go on if there is a place: the first in line that no other gate keeps."""
    whole = Work(door.runbook_name, door.batch_id, phase=door)
    if agenda.gates.at(Door.SEND, whole):
        return []
    is_active = agenda.batches[phase.batch_id].status is BatchStatus.ACTIVE
    may_begin = is_active and not agenda.gates.at(Door.START, whole)
    others_wait = pilots_first(Door.START, Work(door.runbook_name, door.batch_id, member_key="", phase=door), door)
    earlier = [
        other.id
        for other in agenda.phases_of(phase.batch_id)
        if other.status is PhaseStatus.DISPATCHED and other.order < phase.order
    ]
    offered = agenda.offered.setdefault(phase.id, Offered())
    wanted = free * _MORE**offered.rounds
    offered.rounds += 1
    found: list[int] = []
    for size in _pages(wanted, agenda.limits.slice_size):
        page = candidates(
            *(agenda.tx, phase.id, earlier),
            after=offered.after,
            limit=size,
            may_begin=may_begin,
            pilots_only=others_wait is not None,
        )
        found += [one.id for one in page if not _is_kept(agenda, door, one)]
        if page:
            offered.after = page[-1].step_id
        if len(page) < size or len(found) >= wanted:
            break
    return found


def _pages(wanted: int, largest: int) -> Iterable[int]:
    """Return the sizes of pages, from the first that may do; there are few sizes, because each is a statement."""
    yield from (size for size in _PAGES if wanted <= size < largest)
    while True:
        yield largest


def _is_kept(agenda: Agenda, door: PhaseDoor, one: Candidate) -> bool:
    work = Work(
        *(door.runbook_name, door.batch_id, one.worker_id, one.member_key),
        phase=door,
        is_pilot=bool(one.is_pilot),
        joined_no=one.joined_no or 0,
    )
    return bool(agenda.gates.at(Door.START if one.step_index == 0 else Door.SEND, work))
