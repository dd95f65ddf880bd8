"""A snapshot of what membership is decided by: the reading of the source, and the unfinished batches (T5 to T7)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from matoolkit.domain.holds import NOT_BEGUN, REMOVAL_WINDOW, HoldKind, StandingHold
from matoolkit.domain.rows import Candidate, Reading
from matoolkit.domain.states import ABSENT, MemberStatus
from matoolkit.runbook.values import Allowance


@dataclass(frozen=True, slots=True)
class KnownMember:
    """A member of a batch without its data: enough to compare it with a row of the source."""

    id: int
    batch_id: int
    member_key_fold: str
    status: MemberStatus
    data_hash: str
    left_source_at: datetime | None
    removed_at: datetime | None = None
    remove_reason: str | None = None
    undone_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class UnfinishedBatch:
    """A batch that has not ended, as these rules see it; a manual one has no start."""

    id: int
    start: datetime | None
    is_reopened: bool = False
    hold: StandingHold | None = None
    pending_due: tuple[datetime, ...] = ()
    has_cut_over: bool = False
    removals_approved_at: datetime | None = None

    @property
    def is_deaf(self) -> bool:
        """Whether nothing that the source says concerns it: it was reopened, or waits for a person because of init."""
        return self.is_reopened or (self.hold is not None and self.hold.kind is HoldKind.INIT)

    @property
    def is_unbegun(self) -> bool:
        """Whether it was created and waits for a person before anything of it begins (rule T5)."""
        return self.hold is not None and self.hold.kind in NOT_BEGUN


@dataclass(frozen=True, slots=True)
class Before:
    """Where somebody is done, has failed or was undone: the times that the source gave for that, and what became of it.

    Somebody who `was_undone` is done nowhere, and has failed nowhere else.
    """

    times: frozenset[datetime]
    is_done: bool
    was_undone: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The time, the source, and the batches of a runbook that have not ended, with their members.

    `ended_times` are the start times of batches that have ended, `interval` is the time between two ticks. `before`
    says what is known of those who are under way in no batch, `included` whom a person lets in, at which time,
    `excluded` whom a person keeps out. Without history the runbook never had a batch.
    """

    now: datetime
    interval: timedelta
    reading: Reading
    batches: Sequence[UnfinishedBatch]
    members: Sequence[KnownMember]
    ended_times: Collection[datetime] = ()
    limit: Allowance | None = None
    before: Mapping[str, Before] = field(default_factory=dict)
    included: Mapping[str, datetime] = field(default_factory=dict)
    excluded: Collection[str] = frozenset()
    takes_late_joiners: bool = False
    has_history: bool = True

    @property
    def by_id(self) -> dict[int, UnfinishedBatch]:
        """The batches by their numbers."""
        return {batch.id: batch for batch in self.batches}


class View:
    """A snapshot arranged for looking things up, and what was decided on the way."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.now = snapshot.now
        self.snapshot = snapshot
        self.candidates: Mapping[str, Candidate] = snapshot.reading.candidates
        self.active: dict[int, list[KnownMember]] = {batch.id: [] for batch in snapshot.batches}
        self.places: dict[str, KnownMember] = {}
        self.former: dict[tuple[int, str], KnownMember] = {}
        self.in_manual: dict[str, int] = {}
        self._removed: dict[int, list[datetime]] = {}
        self.claimed_times: set[datetime] = set()
        self._starts = {batch.id: batch.start for batch in snapshot.batches}
        self._closed = {batch.id for batch in snapshot.batches if batch.is_deaf}
        self._unbegun = {batch.id for batch in snapshot.batches if batch.is_unbegun}
        for member in snapshot.members:
            self._arrange(member)
        self._by_start = self._arranged_by_start()

    @cached_property
    def returned_times(self) -> set[datetime | None]:
        """All times that the source returns, but for the rows of people who were undone at their time (rule U2)."""
        undone = [fold for (_, fold), member in self.former.items() if member.undone_at is not None]
        ignored = {fold for fold in undone if fold in self.candidates and self.is_undone(fold)}
        return {row.batch_time for key, row in self.candidates.items() if key not in ignored}

    def automated(self) -> list[UnfinishedBatch]:
        """Return the batches that the source has a say in, by id."""
        heard = (batch for batch in self.snapshot.batches if batch.start is not None and not batch.is_deaf)
        return sorted(heard, key=lambda batch: batch.id)

    def begun(self) -> list[UnfinishedBatch]:
        """Return the automated batches that have begun, or are about to, by id."""
        return [batch for batch in self.automated() if not batch.is_unbegun]

    def unbegun(self) -> list[UnfinishedBatch]:
        """Return the automated batches that wait for a person before they begin, by id."""
        return [batch for batch in self.automated() if batch.is_unbegun]

    def start_of(self, batch_id: int) -> datetime:
        """Return when an automated batch starts, after what was rescheduled."""
        start = self._starts[batch_id]
        assert start is not None, "a manual batch has no start"  # noqa: S101 - only automated ones get here
        return start

    def batch_at(self, start: datetime) -> UnfinishedBatch | None:
        """Return the automated batch that starts at a time, after what was rescheduled."""
        return self._by_start.get(start)

    def reschedule(self, starts: Mapping[int, datetime]) -> None:
        """Give batches other starts."""
        self._starts |= starts
        self._by_start = self._arranged_by_start()

    def close(self, batch_id: int) -> None:
        """Let nobody join a batch in this tick."""
        self._closed.add(batch_id)

    def is_closed(self, batch_id: int) -> bool:
        """Tell whether nobody joins a batch in this tick."""
        return batch_id in self._closed

    def is_unbegun(self, batch_id: int) -> bool:
        """Tell whether a batch waits for a person before it begins."""
        return batch_id in self._unbegun

    def has_started(self, batch_id: int) -> bool:
        """Tell whether T of a batch has passed."""
        return self.start_of(batch_id) <= self.now

    def is_late(self, start: datetime) -> bool:
        """Tell whether a start lies more than a tick back; one that is written as a date lasts until its day ends."""
        day_end = self.snapshot.reading.day_ends.get(start)
        return day_end <= self.now if day_end else self.now - start > self.snapshot.interval

    def is_excluded(self, key: str) -> bool:
        """Tell whether a person keeps somebody out (rule U3)."""
        return key in self.snapshot.excluded

    def is_included(self, key: str) -> bool:
        """Tell whether a person lets somebody in at the time that the source gives it."""
        time = self.snapshot.included.get(key)
        return time is not None and time == self.candidates[key].batch_time

    def had(self, key: str, start: datetime) -> bool:
        """Tell whether somebody is done or has failed at this very time."""
        before = self.snapshot.before.get(key)
        return before is not None and start in before.times

    def has_failed_in(self, batch_id: int, key: str) -> bool:
        """Tell whether somebody has failed in a batch."""
        former = self.former.get((batch_id, key))
        return former is not None and former.status is MemberStatus.FAILED

    def is_undone(self, key: str) -> bool:
        """Tell whether a person undid somebody in the batch of the time that the source gives it (rule U2)."""
        start = self.candidates[key].batch_time
        batch = None if start is None else self.batch_at(start)
        former = None if batch is None else self.former.get((batch.id, key))
        return former is not None and former.undone_at is not None

    def time_of(self, member: KnownMember) -> datetime | None:
        """Return the time that the source gives a member, if it returns it in a good row and no person keeps it out."""
        candidate = self.candidates.get(member.member_key_fold)
        return None if candidate is None or self.is_excluded(member.member_key_fold) else candidate.batch_time

    def is_gone(self, member: KnownMember) -> bool:
        """Tell whether the source no longer returns a member, neither in a good row nor in a bad one.

        Somebody who is excluded counts as present (rule U3).
        """
        key = member.member_key_fold
        return not (self.is_excluded(key) or self.snapshot.reading.is_present(key))

    def is_elsewhere(self, member: KnownMember) -> bool:
        """Tell whether the source gives a member another time than its batch has."""
        time = self.time_of(member)
        return time is not None and time != self.start_of(member.batch_id)

    def removed_lately(self, batch: UnfinishedBatch) -> int:
        """Count the members that the source removed within the last day, without a person, and that are not back."""
        since = self.now - REMOVAL_WINDOW
        if batch.removals_approved_at is not None:
            since = max(since, batch.removals_approved_at)
        return sum(1 for at in self._removed.get(batch.id, ()) if at > since)

    def is_in_place(self, member: KnownMember) -> bool:
        """Tell whether the source returns a member where it is."""
        return not self.is_gone(member) and not self.is_elsewhere(member)

    def _arrange(self, member: KnownMember) -> None:
        if self._starts[member.batch_id] is None:
            if member.status is not MemberStatus.REMOVED:
                self.in_manual[member.member_key_fold] = member.batch_id
        elif member.status is MemberStatus.ACTIVE:
            self.active[member.batch_id].append(member)
            self.places[member.member_key_fold] = member
        else:
            self.former[member.batch_id, member.member_key_fold] = member
            if member.removed_at is not None and member.remove_reason == ABSENT:
                self._removed.setdefault(member.batch_id, []).append(member.removed_at)

    def _arranged_by_start(self) -> dict[datetime, UnfinishedBatch]:
        starts = ((self._starts[batch.id], batch) for batch in self.snapshot.batches)
        return {start: batch for start, batch in starts if start is not None}
