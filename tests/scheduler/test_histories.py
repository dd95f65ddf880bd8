"""Random histories of a source: nobody is lost, doubled, or removed beyond the guard (rules T5, T6 and T10)."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matoolkit.clock import VirtualClock
from matoolkit.domain.states import ENDED_BATCHES, BatchStatus
from matoolkit.scheduler.tallies import Tally
from matoolkit.store import open_store
from matoolkit.store.batches import BatchRow
from matoolkit.store.members import MemberRow
from tests.databases import NOON
from tests.scheduler.calendar import Calendar, runbook
from tests.scheduler.history import told

KEYS = [f"k{number}" for number in range(8)]
TIMES = 4
LIMIT = 1

keys = st.sampled_from(KEYS)
some_keys = st.lists(keys, min_size=1, max_size=8, unique=True)
times = st.integers(0, TIMES - 1)
things = st.one_of(
    st.tuples(st.just("given"), some_keys, times),
    st.tuples(st.just("gone"), some_keys),
    st.tuples(st.just("slips"), times, times),
    st.tuples(st.just("called off"), times),
    st.tuples(st.just("broken"), keys, st.sampled_from(["twice", "time"])),
    st.tuples(st.just("corrected"), keys),
    st.tuples(st.just("approved"), times),
    st.tuples(st.just("failed"), keys),
    st.tuples(st.just("ended"), times, st.sampled_from([BatchStatus.COMPLETED, BatchStatus.CANCELLED])),
    st.tuples(st.just("busy"), keys),
    st.tuples(st.just("answered")),
    st.tuples(st.just("passes"), st.sampled_from([5, 60, 60 * 24])),
)
histories = st.lists(st.lists(things, min_size=1, max_size=4), min_size=2, max_size=7)


@dataclass
class World:
    """A calendar to which things happen, and the times that its source uses."""

    calendar: Calendar
    rows: dict[str, datetime] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)

    def time(self, number: int) -> datetime:
        return self.calendar.start + timedelta(days=number)

    def happen(self, thing: tuple[Any, ...]) -> None:
        what, *about = thing
        getattr(self, "_" + what.replace(" ", "_"))(*about)

    def tick(self) -> Tally:
        self.calendar.people.rows = [row for key in self.rows for row in self._written(key)]
        return self.calendar.tick()

    def candidates(self) -> set[str]:
        return {key for key in self.rows if key not in self.broken}

    def _written(self, key: str) -> Iterator[tuple[Any, ...]]:
        kind = self.broken.get(key)
        yield key, "03/04/2026" if kind == "time" else self.rows[key].isoformat(), "Bern"
        if kind == "twice":
            yield key.upper(), self.rows[key].isoformat(), "Rome"

    def _given(self, keys: list[str], number: int) -> None:
        self.rows |= dict.fromkeys(keys, self.time(number))

    def _gone(self, keys: list[str]) -> None:
        self.rows = {key: time for key, time in self.rows.items() if key not in keys}

    def _slips(self, old: int, new: int) -> None:
        moved = {self.time(old): self.time(new)}
        self.rows = {key: moved.get(time, time) for key, time in self.rows.items()}

    def _called_off(self, number: int) -> None:
        self.rows = {key: time for key, time in self.rows.items() if time != self.time(number)}

    def _broken(self, key: str, kind: str) -> None:
        self.broken[key] = kind

    def _corrected(self, key: str) -> None:
        self.broken.pop(key, None)

    def _approved(self, number: int) -> None:
        for batch in self.calendar.batches():
            if batch.held_at and batch.batch_start_time == self.time(number):
                self.calendar.approve(batch.batch_start_time)

    def _failed(self, key: str) -> None:
        for batch in self._unfinished():
            if any(one.member_key == key and one.status == "active" for one in self.calendar.member_rows(batch.id)):
                self.calendar.fail(key, batch.batch_start_time)

    def _ended(self, number: int, status: BatchStatus) -> None:
        for batch in self._unfinished():
            if batch.batch_start_time == self.time(number):
                self.calendar.end(status, batch.batch_start_time)

    def _busy(self, key: str) -> None:
        """Let a worker have a job of somebody."""
        for batch in self._unfinished():
            for one in self.calendar.member_rows(batch.id):
                if one.member_key == key and one.status == "active" and not self._has_work(one):
                    self.calendar.work(key, batch.batch_start_time, received=True)

    def _has_work(self, member: MemberRow) -> bool:
        found = self.calendar.sql(
            f"SELECT 1 FROM step_executions WHERE batch_member_id = {member.id} AND epoch = {member.epoch}"
        )
        return bool(found)

    def _answered(self) -> None:
        self.calendar.change("UPDATE step_executions SET lost_at = NULL, status = 'cancelled'")

    def _passes(self, minutes: int) -> None:
        self.calendar.clock.advance(timedelta(minutes=minutes))

    def _unfinished(self) -> list[BatchRow]:
        return [batch for batch in self.calendar.batches() if batch.status not in ENDED_BATCHES]


@dataclass(frozen=True)
class Snapshot:
    batches: dict[int, BatchRow]
    members: dict[int, MemberRow]

    @staticmethod
    def of(calendar: Calendar) -> "Snapshot":
        batches = {batch.id: batch for batch in calendar.batches()}
        return Snapshot(batches, {one.id: one for batch in batches for one in calendar.member_rows(batch)})

    def active(self) -> list[MemberRow]:
        """Everybody who is active in a batch that has not ended."""
        return [
            one
            for one in self.members.values()
            if one.status == "active" and self.batches[one.batch_id].status not in ENDED_BATCHES
        ]


def check(world: World, before: Snapshot, after: Snapshot, tally: Tally) -> None:
    assert tally.error is None
    active = Counter(one.member_key for one in after.active())
    assert [key for key, count in active.items() if count > 1] == [], "somebody is in two unfinished batches"
    shown = {key for remark in tally.remarks for key in remark.samples}
    assert world.candidates() - set(active) - shown == set(), "somebody in the source has no place and no reason"
    for one in after.members.values():
        assert one.status != "removed" or (one.removed_by and one.remove_reason), "somebody left without a reason"
    assert before.members.keys() <= after.members.keys(), "somebody was forgotten"
    _check_times(world, after, shown)
    _check_removals(before, after)
    _check_holds(before, after)


def _check_times(world: World, after: Snapshot, shown: set[str]) -> None:
    for one in after.active():
        batch = after.batches[one.batch_id]
        if one.member_key in world.candidates() and not batch.held_at and one.member_key not in shown:
            assert batch.batch_start_time == world.rows[one.member_key], "somebody is in a wave of another time"


def _check_removals(before: Snapshot, after: Snapshot) -> None:
    removed: dict[int, set[int]] = {}
    for one in after.members.values():
        was = before.members.get(one.id)
        if was and (was.status, one.status) == ("active", "removed") and one.remove_reason != "moved":
            removed.setdefault(one.batch_id, set()).add(one.id)
    for batch_id, gone in removed.items():
        batch = before.batches[batch_id]
        if batch.is_unbegun:
            continue
        if batch.held_at:
            assert batch.approved_hold_key == batch.hold_key, "a held batch lost members without approval"
            assert gone == set(orjson.loads(batch.hold_json or "{}")["memberIds"]), "others left than were approved"
        else:
            assert len(gone) <= LIMIT, "more left than the removal limit allows"


def _check_holds(before: Snapshot, after: Snapshot) -> None:
    for batch_id, batch in before.batches.items():
        # One that waits for a person before it begins takes members and lets them go (rule T5).
        if batch.held_at and after.batches[batch_id].held_at and not batch.is_unbegun:
            then, now = (
                [one for one in snapshot.members.values() if one.batch_id == batch_id] for snapshot in (before, after)
            )
            assert then == now, "the membership of a held batch changed"
            assert after.batches[batch_id].batch_start_time == batch.batch_start_time


@pytest.fixture
def fresh_world(migrated_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], World]]:
    monkeypatch.setattr("matoolkit.domain.remarks._SAMPLES", 100)
    stores: list[Any] = []

    def make() -> World:
        for store in stores:
            store.close()
        path = tmp_path / f"history{len(stores)}.db"
        shutil.copy(migrated_file, path)
        clock = VirtualClock(NOON)
        stores.append(open_store(f"sqlite:///{path}", clock=clock))
        calendar = Calendar(stores[-1], clock)
        calendar.start = NOON + timedelta(days=2)
        calendar.publish(runbook(safeguards={"max_removals": LIMIT}))
        return World(calendar)

    yield make
    for store in stores:
        store.close()


def written_rows(world: World) -> list[str]:
    """Tick once more and return the statements that write members or data rows."""
    sent: list[str] = []

    def note(statement: str, _parameters: Any) -> None:
        sent.append(statement)

    world.calendar.store.watchers.append(note)
    world.tick()
    world.calendar.store.watchers.remove(note)
    tables = ("UPDATE batch_members", "INSERT INTO batch_members", "UPDATE runbook_wave", "INSERT INTO runbook_wave")
    return [one for one in sent if one.startswith(tables)]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=histories)
def test_t5_t6_whatever_the_source_does_nobody_is_lost_doubled_or_removed_beyond_the_guard(
    fresh_world: Callable[[], World], history: list[list[tuple[Any, ...]]]
) -> None:
    world = fresh_world()
    for things_of_a_round in history:
        for thing in things_of_a_round:
            world.happen(thing)
        before = Snapshot.of(world.calendar)
        tally = world.tick()
        after = Snapshot.of(world.calendar)
        check(world, before, after, tally)
        state = told(world.calendar.store, "runbook_wave_v1")
        assert written_rows(world) == []
        assert told(world.calendar.store, "runbook_wave_v1") == state, "a second tick changed something"
