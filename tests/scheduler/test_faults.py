"""Crashes, two schedulers, clocks that jump, sources that are down: rules T1, T2, T5, T10."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.crashpoints import SimulatedCrash, crashing
from matoolkit.domain.remarks import Seen
from matoolkit.errors import LeaseLost
from tests.databases import Database
from tests.scheduler.calendar import TICK, Calendar, People, runbook
from tests.scheduler.history import told

DAY, WEEK = timedelta(days=1), timedelta(days=7)
_TABLES = ("runbook_wave_v1", "runbook_wave_v2")


@pytest.fixture
def copies(request: pytest.FixtureRequest, database: Database, tmp_path: Path) -> Iterator[Callable[[], Database]]:
    """Copies of the database as it is when the first one is asked for."""
    made: list[Database] = []
    server: Any = request.getfixturevalue("postgres") if database.kind == "postgresql" else None

    def copy() -> Database:
        database.close()
        if server is None:
            path = tmp_path / f"copy{len(made)}.db"
            shutil.copy(tmp_path / "state.db", path)
            made.append(Database(f"sqlite:///{path}", "sqlite"))
        else:
            name = server.make(database.url.rsplit("/", 1)[1].split("?")[0])
            made.append(Database(server.url_of(name), "postgresql"))
        return made[-1]

    yield copy
    for one in made:
        one.close()
        if server is not None:
            server.drop(one.url.rsplit("/", 1)[1].split("?")[0])


def names(letter: str, count: int) -> list[str]:
    return [f"{letter}{number}" for number in range(count)]


def rich(calendar: Calendar) -> None:
    """Prepare a calendar for a tick in which about everything happens."""
    day = [calendar.start + DAY * number for number in range(20)]
    sizes = {"a": 8, "b": 4, "c": 3, "d": 10, "e": 10, "f": 10, "g": 5, "h": 2}
    for number, (letter, size) in enumerate(sizes.items()):
        calendar.in_source(*names(letter, size), at=day[number])
    calendar.in_source("back", at=day[1])
    calendar.tick()
    calendar.gone("back", *names("e", 6), *names("f", 6))
    calendar.tick(TICK)
    calendar.tick(timedelta(days=3))  # the first phase of a is due
    calendar.work("a5")
    calendar.work("a6", received=True)
    calendar.approve(day[4])
    calendar.in_source(*names("f", 6), at=day[5])  # everybody is back
    calendar.in_source("back", "b9", at=day[1])  # returns, and joins
    calendar.gone("b3", *names("d", 6))  # removed, and too many to be
    calendar.in_source("a5", "a6", at=day[1])  # move to a batch, one of them when its job has answered
    calendar.in_source("a7", at=day[15])  # moves to a new one
    calendar.in_source("a4", at=day[3])  # moves to one that is being held
    calendar.in_source(*names("c", 3), at=day[9])  # rescheduled
    calendar.in_source("g0", "g1", "g2", at=day[16])
    calendar.in_source("g3", "g4", at=day[17])  # all move, but not to one time
    calendar.in_source("a0", at=day[0], city="Rome")
    calendar.in_source("broken", at="03/04/2026")
    calendar.in_source(*names("n", 3), at=day[18])
    calendar.publish(runbook(description="second"))
    calendar.clock.advance(timedelta(hours=24))  # the first phase of b is due
    calendar.scheduler.lease.let_go()


def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a tick have many transactions."""
    for module in ("reading", "joining", "packing", "snapshot"):
        monkeypatch.setattr(f"matoolkit.scheduler.{module}.AT_ONCE", 3)
    monkeypatch.setattr("matoolkit.scheduler.transitions.SLICE", 3)
    monkeypatch.setattr("matoolkit.scheduler.due_phases._AT_ONCE", 1)


def again(calendar: Calendar, database: Database) -> Calendar:
    """Go on with a calendar on another copy of its database."""
    clock = VirtualClock(calendar.clock.now())
    copied = Calendar(database.open(clock), clock, People(list(calendar.people.rows)))
    copied.start = calendar.start
    return copied


@pytest.mark.on("sqlite", "postgresql")  # where a database is copied in a moment
@pytest.mark.parametrize("point", ["store.before_commit", "store.after_commit"])
def test_t10_after_a_crash_at_any_boundary_of_a_tick_the_next_one_comes_to_the_same_end(
    calendar: Calendar, copies: Callable[[], Database], monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    rich(calendar)
    small_slices(monkeypatch)
    whole = again(calendar, copies())
    tally = whole.tick()
    counts = [value for name, value in asdict(tally).items() if name.startswith(("batches", "members", "phases"))]
    assert all(counts), tally
    whole.tick()
    expected = told(whole.store, *_TABLES)
    boundary = 0
    while True:
        boundary += 1
        copy = copies()
        try:
            with crashing(point, on_hit=boundary):
                again(calendar, copy).tick()
            break
        except SimulatedCrash:
            restarted = again(calendar, copy)
        restarted.change("DELETE FROM leases")  # it has run out, though no time has passed
        restarted.tick()
        restarted.tick()
        assert told(restarted.store, *_TABLES) == expected, f"boundary {boundary}"
    assert boundary > 20


# Two schedulers


@pytest.fixture
def standby(calendar: Calendar, database: Database) -> Calendar:
    """Another scheduler on the same database, source and clock."""
    other = Calendar(database.open(calendar.clock), calendar.clock, calendar.people, "two")
    other.start = calendar.start
    return other


def test_t10_one_scheduler_works_and_the_other_takes_over_when_it_is_gone(
    calendar: Calendar, standby: Calendar
) -> None:
    calendar.in_source("Ada")
    calendar.tick()
    assert standby.scheduler.tick() is None
    assert standby.scheduler.sweep() == 0
    calendar.in_source("Bob")
    calendar.clock.advance(timedelta(seconds=89))
    assert standby.scheduler.tick() is None
    calendar.clock.advance(timedelta(seconds=1))
    assert standby.tick().members_added == 1
    assert calendar.scheduler.tick() is None
    assert standby.members() == {"Ada": "active", "Bob": "active"}


def test_t10_a_scheduler_that_stops_lets_the_other_work_at_once(calendar: Calendar, standby: Calendar) -> None:
    calendar.tick()
    calendar.scheduler.lease.let_go()
    calendar.in_source("Ada")
    assert standby.tick().batches_created == 1


@pytest.mark.parametrize("nth", range(1, 9))
def test_t10_a_scheduler_that_lost_its_lease_in_the_middle_of_a_tick_changes_nothing_more(
    calendar: Calendar, standby: Calendar, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    calendar.in_source(*names("a", 6))
    calendar.in_source(*names("b", 6), at=calendar.start + DAY)
    calendar.tick()
    calendar.in_source(*names("a", 3), city="Rome")
    calendar.in_source(*names("b", 6), at=calendar.start + DAY * 2)
    calendar.in_source(*names("c", 6), at=calendar.start + DAY * 3)
    small_slices(monkeypatch)
    confirm, seen = calendar.scheduler.lease.confirm, []

    def lost_at_the_nth(tx: Any) -> None:
        seen.append(tx)
        if len(seen) == nth:
            calendar.clock.advance(timedelta(seconds=90))
        confirm(tx)

    monkeypatch.setattr(calendar.scheduler.lease, "confirm", lost_at_the_nth)
    with pytest.raises(LeaseLost):
        calendar.scheduler.tick()
    assert len(seen) == nth
    before = told(calendar.store, "runbook_wave_v1")
    standby_tick = standby.tick()
    assert standby_tick.error is None
    after = told(calendar.store, "runbook_wave_v1")
    with pytest.raises(LeaseLost), calendar.store.transaction() as tx:
        confirm(tx)
    assert told(calendar.store, "runbook_wave_v1") == after
    assert before != after or nth > 7


# Clocks and sources


def test_t5_a_clock_that_is_put_back_removes_nobody_who_left_the_source_after_t(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob", "Cid")
    calendar.tick()
    now = calendar.start + timedelta(hours=1)
    calendar.clock.jump(now)
    calendar.gone("Bob", "Cid")
    calendar.tick()
    assert set(calendar.phases().values()) == {"dispatched"}
    calendar.messages()
    calendar.clock.jump(calendar.start - DAY)
    calendar.scheduler.lease.let_go()
    tally = calendar.tick()
    assert (tally.members_removed, tally.batches_held) == (0, 0)
    assert set(calendar.members().values()) == {"active"}
    calendar.clock.jump(now)
    calendar.tick()
    assert calendar.messages() == []


def test_t8_a_clock_that_jumps_ahead_and_back_dispatches_every_phase_once(calendar: Calendar) -> None:
    calendar.in_source("Ada")
    calendar.tick()
    prepare = calendar.phase_rows()[0]
    noon = calendar.clock.now()
    calendar.clock.jump(noon + timedelta(days=3))
    calendar.tick()
    calendar.clock.jump(noon)
    calendar.scheduler.lease.let_go()
    calendar.tick()
    calendar.clock.jump(noon + timedelta(days=3))
    calendar.tick()
    assert calendar.messages() == [f"phase-due-{prepare.id}-1"]


def test_t2_a_source_that_is_down_for_a_day_loses_nobody_and_delays_nothing(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.break_source()
    for _ in range(24 * 4):
        assert calendar.tick(timedelta(hours=1)).error
    assert calendar.phases()["prepare"] == "dispatched"
    assert len(calendar.messages()) == 1
    calendar.mend_source()
    tally = calendar.tick(TICK)
    assert (tally.error, tally.members_removed, tally.members_added, tally.batches_held) == (None, 0, 0, 0)
    assert calendar.members() == {"Ada": "active", "Bob": "active"}


def test_t5_when_t_passed_while_everything_was_down_phases_go_in_order_and_absence_is_no_removal(
    calendar: Calendar,
) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.in_source("Cid", at=calendar.start + DAY)
    calendar.tick()
    calendar.people.rows = []
    tally = calendar.tick(timedelta(days=15))
    assert (tally.members_removed, tally.batches_held, tally.phases_dispatched) == (0, 0, 6)
    first, second = calendar.phase_rows(), calendar.phase_rows(calendar.start + DAY)
    order = [first[0], second[0], first[1], first[2], second[1], second[2]]
    assert calendar.messages() == [f"phase-due-{phase.id}-1" for phase in order]
    assert calendar.member("Ada").left_source_at == calendar.clock.now()
    assert set(calendar.members().values()) == {"active"}


def test_t5_moves_that_were_written_while_everything_was_down_are_shown_after_t(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.in_source("Ada", "Bob", at=calendar.start + WEEK * 4)
    tally = calendar.tick(timedelta(days=15))
    assert {remark.seen: remark.count for remark in tally.remarks} == {Seen.MOVED_AFTER_START: 2}
    assert (tally.batches_rescheduled, tally.phases_dispatched) == (0, 3)


def test_t10_running_a_tick_twice_changes_nothing(calendar: Calendar) -> None:
    rich(calendar)
    calendar.tick()
    calendar.tick()
    before = told(calendar.store, *_TABLES)
    calendar.tick()
    assert told(calendar.store, *_TABLES) == before
