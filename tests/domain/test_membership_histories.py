"""Rules T5 and T6 over random histories, with what is decided applied to a model in memory."""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from matoolkit.domain.changes import Changes, Join, Return
from matoolkit.domain.holds import StandingHold
from matoolkit.domain.membership import decide
from matoolkit.domain.rows import Candidate, Reading
from matoolkit.domain.snapshot import KnownMember, Snapshot, UnfinishedBatch
from matoolkit.domain.states import ABSENT, MOVED, MemberStatus
from matoolkit.runbook.values import Allowance
from tests.domain.snapshots import NOW, TICK

KEYS = [f"k{number}" for number in range(7)]
STARTS = [NOW + timedelta(days=number) for number in range(1, 6)]
LIMIT = 1

places = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(STARTS))
changes_of_rows = st.one_of(
    places,
    st.tuples(st.just("slip"), st.sampled_from(STARTS), st.sampled_from(STARTS)),
    st.tuples(st.just("gone"), st.lists(st.sampled_from(KEYS), min_size=1)),
)
rounds = st.tuples(
    changes_of_rows,
    st.sets(st.sampled_from(KEYS), max_size=1),  # set aside
    st.sampled_from([None, "approve", "fail", "end", "reopen", "cut over"]),
    st.integers(0, 6),  # whom, or which batch
    st.sampled_from([timedelta(minutes=5), timedelta(hours=12)]),
)


@dataclass
class Model:
    """Batches and members as changes make them."""

    now: datetime = NOW
    rows: dict[str, datetime] = field(default_factory=dict)
    aside: frozenset[str] = frozenset()
    batches: dict[int, UnfinishedBatch] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    members: dict[int, KnownMember] = field(default_factory=dict)
    held_members: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def snapshot(self) -> Snapshot:
        candidates = {
            key: Candidate(key, start, start.isoformat().encode(), None)
            for key, start in self.rows.items()
            if key not in self.aside
        }
        unfinished = [batch for batch in self.batches.values() if batch.id not in self.ended]
        return Snapshot(
            now=self.now,
            interval=TICK,
            reading=Reading(len(candidates), candidates, self.aside & self.rows.keys(), {}, ()),
            batches=unfinished,
            members=[one for one in self.members.values() if one.batch_id not in self.ended],
            ended_times={self.batches[number].start for number in self.ended} - {None},  # type: ignore[arg-type]
            limit=Allowance(count=LIMIT),
        )

    def active(self) -> list[KnownMember]:
        return [one for one in self._in_flight() if one.status is MemberStatus.ACTIVE]

    def _in_flight(self) -> list[KnownMember]:
        return [one for one in self.members.values() if one.batch_id not in self.ended]

    def apply(self, changes: Changes) -> None:
        for number, start in changes.reschedules.items():
            self.batches[number] = replace(self.batches[number], start=start)
        for number in changes.releases:
            self.batches[number] = replace(self.batches[number], hold=None)
        removed = [one for some in changes.approved_removals.values() for one in some]
        for part in changes.batches.values():
            removed += part.removals
        for number in removed:
            self._move(number, MemberStatus.REMOVED, ABSENT)
        for number in changes.moving:
            self._move(number, MemberStatus.REMOVED, MOVED)
        for number in changes.approved_removals:
            self.batches[number] = replace(self.batches[number], removals_approved_at=self.now)
        self._change(changes)
        for start, joins in changes.new.items():
            number = len(self.batches) + 1
            self.batches[number] = UnfinishedBatch(number, start, pending_due=(start,))
            self._let_in(number, joins)
        self._hold(changes)

    def _change(self, changes: Changes) -> None:
        for number, part in changes.batches.items():
            self._let_in(number, part.coming)
            for member_id in part.left_source:
                self.members[member_id] = replace(self.members[member_id], left_source_at=self.now)
            for member_id in part.back_in_source:
                self.members[member_id] = replace(self.members[member_id], left_source_at=None)
            for refresh in part.refreshes:
                self._refresh(refresh.member_id)

    def _hold(self, changes: Changes) -> None:
        for hold in changes.holds:
            batch = self.batches[hold.batch_id]
            if batch.hold is None or batch.hold.key != hold.key:
                standing = StandingHold(hold.kind, hold.key, is_approved=False)
                self.batches[hold.batch_id] = replace(batch, hold=standing)
                self.held_members[hold.batch_id] = hold.member_ids

    def _let_in(self, batch_id: int, coming: list[Join] | list[Join | Return]) -> None:
        for one in coming:
            if isinstance(one, Return):
                self._move(one.member_id, MemberStatus.ACTIVE)
                self._refresh(one.member_id)
            else:
                number = len(self.members) + 1
                row = self.rows[one.key].isoformat().encode().hex()
                self.members[number] = KnownMember(number, batch_id, one.key, MemberStatus.ACTIVE, row, None)

    def _move(self, number: int, status: MemberStatus, reason: str | None = None) -> None:
        assert self.members[number].status is not status
        self.members[number] = replace(
            self.members[number],
            status=status,
            left_source_at=None,
            removed_at=self.now if reason else None,
            remove_reason=reason,
        )

    def left_within_a_day(self, batch_id: int) -> int:
        """Count those who left since a day ago, or since a person approved that some leave."""
        since = max(self.now - timedelta(days=1), self.batches[batch_id].removals_approved_at or NOW)
        mine = [one for one in self.members.values() if one.batch_id == batch_id and one.remove_reason == ABSENT]
        return sum(1 for one in mine if one.removed_at is not None and one.removed_at > since)

    def _refresh(self, number: int) -> None:
        row = self.rows[self.members[number].member_key_fold].isoformat().encode().hex()
        self.members[number] = replace(self.members[number], data_hash=row)

    def happen(self, rows: Any, aside: set[str], deed: str | None, which: int, later: timedelta) -> None:
        self.now += later
        self.aside = frozenset(aside)
        if isinstance(rows, dict):
            self.rows |= rows
        elif rows[0] == "slip":
            self.rows = {key: rows[2] if start == rows[1] else start for key, start in self.rows.items()}
        else:
            self.rows = {key: start for key, start in self.rows.items() if key not in rows[1]}
        open_batches = [batch for batch in self.batches.values() if batch.id not in self.ended]
        if deed == "fail" and self.active():
            failing = self.active()[which % len(self.active())]
            self.members[failing.id] = replace(failing, status=MemberStatus.FAILED)
        elif deed is not None and open_batches:
            self._do(deed, open_batches[which % len(open_batches)])

    def _do(self, deed: str, batch: UnfinishedBatch) -> None:
        if deed == "end":
            self.ended.add(batch.id)
        elif deed == "approve" and batch.hold:
            self.batches[batch.id] = replace(batch, hold=replace(batch.hold, is_approved=True))
        elif deed == "reopen":
            self.batches[batch.id] = replace(batch, is_reopened=True)
        elif deed == "cut over":
            self.batches[batch.id] = replace(batch, has_cut_over=True)


@settings(max_examples=250, deadline=None)
@given(history=st.lists(rounds, min_size=2, max_size=9))
def test_t5_t6_over_any_history_the_invariants_hold(history: list[Any]) -> None:
    model = Model()
    for happened in history:
        model.happen(*happened)
        before, held = dict(model.members), {one.id for one in model.batches.values() if one.hold}
        changes = decide(model.snapshot())
        for number, part in changes.batches.items():
            before_now = model.left_within_a_day(number) if part.removals else 0
            assert before_now + len(part.removals) <= LIMIT, "more left than the guard allows"
            assert number not in {hold.batch_id for hold in changes.holds} or not part.coming
        for number, gone in changes.approved_removals.items():
            hold = model.batches[number].hold
            assert hold is not None
            assert hold.is_approved
            assert tuple(gone) == model.held_members[number], "others left than were approved"
        model.apply(changes)
        for number in held - changes.releases.keys():
            then, now = ([one for one in some.values() if one.batch_id == number] for some in (before, model.members))
            assert then == now, "the membership of a held batch changed"
        counts = Counter(one.member_key_fold for one in model.active())
        assert max(counts.values(), default=0) <= 1, "somebody is in two unfinished batches"
        starts = [batch.start for batch in model.batches.values()]
        assert len(set(starts)) == len(starts), "a time has two batches"
        _nothing_more(model)


def _nothing_more(model: Model) -> None:
    """A second look changes nothing: holds stay for the same thing, and the rest is shown."""
    again = decide(model.snapshot())
    standing = {one.id: one.hold.key for one in model.batches.values() if one.hold}
    assert {hold.batch_id: standing.get(hold.batch_id) for hold in again.holds} == {
        hold.batch_id: hold.key for hold in again.holds
    }, "a hold changed its key"
    assert not again.reschedules
    assert not again.releases
    assert not again.new
    assert [part for part in again.batches.values() if len(part)] == []
