"""What is told of what happens, read from the state while scheduler, orchestrator and a scripted worker are at work."""

from datetime import timedelta

import pytest

from matoolkit.admin.approving import approve
from matoolkit.admin.retrying import retry_members
from matoolkit.clock import VirtualClock
from matoolkit.hosting.story import Line, Mark, Story
from matoolkit.hosting.story.look import MOST_MEMBERS
from matoolkit.store import Store
from tests.scheduler.calendar import runbook, step
from tests.stage import Failing
from tests.system.test_together import DAY, Together, with_extras

# What is read are the store's own questions, which have their tests on every database.
pytestmark = pytest.mark.on("sqlite")
TICK = timedelta(minutes=5)


class Told:
    """A story, and what it said since it was last asked: marks and texts."""

    def __init__(self, store: Store, clock: VirtualClock) -> None:
        self.lines: list[Line] = []
        self.story = Story(store, clock, self.lines.extend)

    def news(self) -> list[tuple[Mark, str]]:
        self.story.tell()
        found = [(line.mark, line.text) for line in self.lines]
        self.lines.clear()
        return found


@pytest.fixture
def together(store: Store, clock: VirtualClock) -> Together:
    return Together(store, clock)


@pytest.fixture
def told(together: Together, store: Store, clock: VirtualClock) -> Told:
    together.calendar.publish(with_extras(retry={"max_retries": 1, "interval": "1m"}))
    return Told(store, clock)


def test_a_wave_is_told_from_its_discovery_to_its_end(together: Together, told: Told) -> None:
    calendar = together.calendar
    calendar.in_source("a", "b")
    calendar.in_source("c", at="soon")
    together.pass_time(timedelta())
    assert told.news() == [
        (Mark.FOUND, f"2 members of wave, T is {calendar.start:%Y-%m-%d %H:%M}: a, b"),
        (Mark.SET_ASIDE, "c: 'start': it is not a time: write YYYY-MM-DD HH:MM or ISO 8601"),
    ]
    together.pass_time(3 * DAY)
    assert told.news() == [
        (Mark.DUE, "phase prepare, planned for T-7d"),
        (Mark.DONE, "a prepare-it"),
        (Mark.DONE, "b prepare-it"),
        (Mark.ENDED, "phase prepare is completed"),
    ]
    assert told.news() == [], "nothing is told twice"
    together.pass_time(7 * DAY)
    news = told.news()
    assert news[-1] == (Mark.ENDED, "the batch is completed: 2 migrated")
    assert news.count((Mark.MIGRATED, "a")) == 1
    assert news.index((Mark.MIGRATED, "a")) < news.index((Mark.ENDED, "phase cutover is completed"))
    together.pass_time(DAY)
    assert told.news() == []


def test_who_comes_late_leaves_and_comes_back_is_told(together: Together, told: Told) -> None:
    calendar = together.calendar
    calendar.in_source("a", "b")
    together.pass_time(3 * DAY)
    told.news()
    calendar.in_source("late")
    calendar.gone("b")
    together.pass_time(TICK)
    news = told.news()
    assert (Mark.JOINED, "late late, and catches up") in news
    assert (Mark.DONE, "late prepare-it") in news
    assert (Mark.LEFT, "b: the source no longer returns it") in news
    assert (Mark.UNDONE, "b forget (on_member_removed)") in news
    calendar.in_source("b")
    together.pass_time(TICK)
    assert (Mark.JOINED, "b again, and starts all over") in told.news()


def test_a_failure_its_retry_and_a_persons_retry_are_told(together: Together, told: Told) -> None:
    calendar, stage = together.calendar, together.stage
    calendar.in_source("a", "b")
    stage.answers["Set-EntraUserEnabled"] = lambda job: Failing() if job.parameters["UserId"] == "b" else None
    together.pass_time(timedelta())
    together.pass_time(3 * DAY)
    assert (Mark.AGAIN, "b prepare-it in 1m: it did not work") in told.news()
    together.pass_time(TICK)
    assert (Mark.FAILED, "b prepare-it: it did not work") in told.news()
    together.pass_time(7 * DAY)
    assert (Mark.ENDED, "the batch is completed: 1 migrated, 1 failed") in told.news()
    stage.answers["Set-EntraUserEnabled"] = None
    batch = calendar.batch()
    retry_members(stage.store, stage.bus, batch.id, by="anna")
    assert (Mark.CHANGED, "reopened, to try again") in told.news()
    together.pass_time(TICK)
    news = told.news()
    assert (Mark.MIGRATED, "b") in news
    assert (Mark.MIGRATED, "a") not in news


def test_holds_reschedules_and_versions_are_told(together: Together, told: Told) -> None:
    calendar, stage = together.calendar, together.stage
    keys = [f"u{number}" for number in range(8)]
    calendar.in_source(*keys)
    together.pass_time(timedelta())
    told.news()
    later = calendar.start + DAY
    calendar.in_source(*keys, at=later)
    together.pass_time(TICK)
    assert (Mark.CHANGED, f"T is now {later:%Y-%m-%d %H:%M}") in told.news()
    calendar.gone(*keys[:6])
    together.pass_time(TICK)
    ((mark, text),) = told.news()
    assert mark is Mark.HELD
    assert text.startswith("until a person approves: ")
    batch = calendar.batch(later)
    approve(stage.store, stage.bus, batch.id, str(stage.reload(batch).hold_key), by="anna")
    together.pass_time(TICK)
    assert (Mark.CHANGED, "no longer held") in told.news()
    calendar.publish(runbook(phases=[{"name": "only", "offset": "T-0", "steps": [step("it")]}]))
    together.pass_time(TICK)
    news = told.news()
    assert (Mark.CHANGED, "follows another version of its runbook") in news
    assert (Mark.ENDED, "phase prepare is superseded") in news


def test_the_members_of_a_large_batch_are_counted_not_told(together: Together, told: Told) -> None:
    together.calendar.in_source(*(f"u{number}" for number in range(MOST_MEMBERS + 1)))
    together.pass_time(timedelta())
    together.pass_time(10 * DAY)
    news = told.news()
    assert {mark for mark, _ in news} == {Mark.FOUND, Mark.DUE, Mark.ENDED}
    assert news[-1] == (Mark.ENDED, f"the batch is completed: {MOST_MEMBERS + 1} migrated")


def test_who_comes_back_is_told_where_each_batch_stands(
    together: Together, told: Told, store: Store, clock: VirtualClock
) -> None:
    calendar = together.calendar
    calendar.in_source("a")
    together.pass_time(timedelta())
    calendar.in_source("b", at=calendar.start + 20 * DAY)
    together.pass_time(10 * DAY)
    soon = calendar.start + 13 * DAY
    assert [line.text for line in Story(store, clock, lambda _: None).so_far()] == [
        "completed: 1 migrated",
        f"active: 1 member, prepare comes at {soon:%Y-%m-%d %H:%M}",
    ]
    assert Told(store, clock).news() == [], "what was before is not told again"
