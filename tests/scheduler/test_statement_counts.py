"""The number of statements of a tick grows with slices of rows, not with rows or batches (rules T4 and M4)."""

import math
from collections.abc import Callable
from datetime import timedelta

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.scheduler.reading import AT_ONCE
from matoolkit.store import Store
from tests.scheduler.calendar import TICK, Calendar, with_init

# Statements of a tick of one runbook: so many, and so many more for every slice of its rows.
UNCHANGED = (29, 1)
FIRST_SIGHT = (33, 16)


def most(measure: tuple[int, int], rows: int) -> int:
    fixed, each = measure
    return fixed + each * math.ceil(rows / AT_ONCE)


def fill(calendar: Calendar, rows: int, batches: int) -> None:
    starts = [(calendar.start + timedelta(hours=number)).isoformat() for number in range(batches)]
    calendar.people.rows = [(f"m{number}", starts[number % batches], "Bern") for number in range(rows)]


@pytest.mark.parametrize("rows", [1_000, 5_000, 20_000])
def test_t4_statements_of_a_tick_grow_with_slices_of_rows(
    calendar: Calendar, statements: Callable[[], list[str]], rows: int
) -> None:
    fill(calendar, rows, 50)
    statements()
    assert calendar.tick().members_added == rows
    first = len(statements())
    assert calendar.tick(TICK).members_added == 0
    unchanged = len(statements())
    assert first <= most(FIRST_SIGHT, rows)
    assert unchanged <= most(UNCHANGED, rows)


def test_t5_statements_do_not_grow_with_batches(calendar: Calendar, statements: Callable[[], list[str]]) -> None:
    counts: list[int] = []
    calendar.tick()  # makes the data table
    for number, batches in enumerate((1, 1, 100)):
        calendar.start += timedelta(days=30)
        fill(calendar, 1_000, batches)
        calendar.people.rows = [(f"{number}-{key}", *rest) for key, *rest in calendar.people.rows]
        statements()
        assert calendar.tick().batches_created == batches
        counts.append(len(statements()))
        calendar.change("UPDATE batches SET status = 'completed'")
    assert counts[1] == counts[2]


def test_t5_statements_of_changes_do_not_grow_with_members(
    calendar: Calendar, statements: Callable[[], list[str]]
) -> None:
    counts: list[int] = []
    calendar.tick()  # makes the data table
    for size in (1, 50):
        people = [[f"{letter}{size}-{number}" for number in range(size * 10)] for letter in "abcd"]
        calendar.start += timedelta(days=30)
        later = calendar.start + timedelta(days=1)
        calendar.in_source(*people[0], *people[1])
        calendar.in_source(*people[2], at=later)
        calendar.tick()
        calendar.gone(*people[0][:size])  # removed
        calendar.in_source(*people[1][:size], at=later)  # moved
        calendar.in_source(*people[0][size:], city="Rome")  # refreshed
        calendar.in_source(*people[3])  # added
        statements()
        tally = calendar.tick(TICK)
        assert (tally.members_removed, tally.members_moved, tally.members_refreshed) == (size, size, size * 9)
        counts.append(len(statements()))
        calendar.change("UPDATE batches SET status = 'completed'")
        calendar.people.rows = []
    assert counts[0] == counts[1]


@pytest.mark.parametrize("days", [0, 3])
def test_s7_statements_of_a_sweep_do_not_grow_with_inits_that_wait(
    store: Store, clock: VirtualClock, statements: Callable[[], list[str]], days: int
) -> None:
    """Before the time to approve them ends, and after it."""
    counts: list[int] = []
    calendar = Calendar(store, clock)
    calendar.publish(with_init(init_approval={"until": "T-8d"}))
    for number, batches in enumerate((1, 40)):
        calendar.start = clock.now() + timedelta(days=30)
        fill(calendar, batches, batches)
        calendar.people.rows = [(f"{number}-{key}", *rest) for key, *rest in calendar.people.rows]
        calendar.tick()
        clock.advance(timedelta(days=21 + days))
        calendar.scheduler.sweep()
        calendar.scheduler.sweep()
        statements()
        calendar.scheduler.sweep()
        counts.append(len(statements()))
        calendar.change("UPDATE batches SET status = 'completed'")
        calendar.scheduler.sweep()
    assert counts[0] == counts[1]
