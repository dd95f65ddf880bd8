"""An independent record of who is done or has failed at which time: nobody is taken again by itself (rule T5).

What the system remembers is not asked: the roll is kept from what was committed, member by member.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from matoolkit.domain.holds import NOT_BEGUN
from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.processes import Plant
from matoolkit.simulate.recording import Entry

# A tick may be slow, and a clock may jump a little, so late means later than that.
_LATE = timedelta(minutes=20)


@dataclass(slots=True)
class _Member:
    key: str
    batch: int
    time: str | None
    status: str = "active"
    is_undone: bool = False


@dataclass(slots=True)
class _Batch:
    start: str | None
    status: str


class Roll:
    """Follows members and batches from what was committed."""

    def __init__(self, plant: Plant, *, is_immediate: bool) -> None:
        self._plant = plant
        # Members of an immediate runbook are taken again after a while (rule T7).
        self._is_immediate = is_immediate
        self._members: dict[int, _Member] = {}
        self._batches: dict[int, _Batch] = {}

    def see(self, entries: Iterable[Entry]) -> None:
        """Look at what one event committed."""
        now = self._plant.clock.now()
        for entry in entries:
            match entry.what:
                case "new_batch":
                    self._batches[entry.id] = _Batch(entry.about["start"], entry.new or "")
                case "batch":
                    self._see_batch(entry)
                case "released":
                    self._see_release(entry, now)
                case "new_member":
                    self._see_joining(entry, now)
                case "member":
                    self._see_member(entry)

    def _see_batch(self, entry: Entry) -> None:
        batch, about = self._batches[entry.id], entry.about
        batch.status, start = entry.new or "", about["start"]
        if start != batch.start:
            batch.start = start
            for member in self._members.values():
                if member.batch == entry.id and member.status == "active":
                    member.time = start

    def _see_release(self, entry: Entry, now: datetime) -> None:
        about, start = entry.about, entry.about["start"]
        if entry.new == "cancelled" or about["approved"] or about["kind"] not in NOT_BEGUN:
            return
        people = [one.key for one in self._members.values() if one.batch == entry.id and one.status == "active"]
        again = [key for key in people if self._before(key) and not self._is_included(key, start)]
        if again or _is_late(start, now):
            raise Violation(f"batch {entry.id} of {start} begins without a person, with {again}")

    def _see_joining(self, entry: Entry, now: datetime) -> None:
        about, key = entry.about, entry.about["key"]
        start, is_unbegun = about["start"], about["kind"] in NOT_BEGUN
        before = self._before(key)
        self._members[entry.id] = _Member(key, about["batch"], start)
        if self._is_immediate or about["manual"] or self._is_included(key, start):
            return
        if any(place.time == start for place in (*before, *self._undone(key))):
            raise Violation(f"{key} is taken again at {start}, where it is done, has failed or was undone: {about}")
        if any(place.status == "active" for place in before) and not is_unbegun:
            raise Violation(f"{key} is done, and is taken into batch {about['batch']} of {start} by itself: {about}")
        if _is_late(start, now) and not is_unbegun:
            raise Violation(f"{key} is taken into batch {about['batch']} of {start}, which is long past: {about}")

    def _see_member(self, entry: Entry) -> None:
        member = self._members[entry.id]
        member.status = entry.new or ""
        is_back = member.is_undone and member.status == "active"
        manual = self._batches[member.batch].start is None
        if is_back and not manual and not self._is_included(member.key, self._batches[member.batch].start):
            raise Violation(f"{entry}: {member.key} was undone, and no person lets it in again: {entry.about}")
        member.is_undone = bool(entry.about["mark"])
        if member.status == "active" and entry.old == "removed":
            member.time = self._batches[member.batch].start

    def _before(self, key: str) -> list[_Member]:
        """Return the batches in which a person has failed or is done."""
        mine = [one for one in self._members.values() if one.key.casefold() == key.casefold()]
        return [one for one in mine if one.status == "failed" or self._is_done(one)]

    def _undone(self, key: str) -> list[_Member]:
        """Return the batches in which a person was undone."""
        return [one for one in self._members.values() if one.key.casefold() == key.casefold() and one.is_undone]

    def _is_done(self, member: _Member) -> bool:
        return member.status == "active" and self._batches[member.batch].status == "completed"

    def _is_included(self, key: str, start: str | None) -> bool:
        said = "SELECT batch_time FROM member_inclusions WHERE member_key_fold = '{}'"
        return (start,) in self._plant.state.look(said.format(key.casefold()))


def _is_late(start: str | None, now: datetime) -> bool:
    return start is not None and now - datetime.fromisoformat(start).replace(tzinfo=UTC) > _LATE
