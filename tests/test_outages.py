"""Trouble that lasts: one line when it begins, one a minute, one when it is over (section 11)."""

import logging
from datetime import UTC, datetime, timedelta

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.errors import StoreBusy, StoreUnavailable
from matoolkit.outages import Outage

log = logging.getLogger("matoolkit.tests.outages")
AWAY = StoreUnavailable("no answer")


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(datetime(2026, 3, 3, 12, tzinfo=UTC))


@pytest.fixture
def outage(clock: VirtualClock) -> Outage:
    """The outage of a connection that has worked before, as its owner tells it."""
    made = Outage("the database", log, clock, is_owner=True)
    made.worked()
    return made


def test_an_hour_of_trouble_is_a_line_a_minute(
    outage: Outage, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3600):
        outage.failed(AWAY)
        clock.sleep(1)
    outage.worked()
    outage.worked()
    assert len(caplog.messages) == 1 + 59 + 1
    assert caplog.messages[0] == "the database fails, and is tried again: no answer"
    assert caplog.messages[1] == "the database still fails after 60 seconds: no answer"
    assert caplog.messages[-1] == "the database works again after 3600 seconds"
    assert {record.levelname for record in caplog.records} == {"WARNING"}


def test_trouble_that_comes_again_is_told_again(outage: Outage, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        outage.failed(AWAY)
        outage.worked()
    assert len(caplog.messages) == 4


def test_pauses_grow_to_a_limit_and_begin_anew(outage: Outage) -> None:
    assert [outage.failed(AWAY) for _ in range(7)] == [0.5, 1, 2, 4, 8, 15, 15]
    outage.worked()
    assert outage.failed(AWAY) == 0.5


def test_a_try_that_began_before_another_worked_begins_no_outage(
    outage: Outage, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    begun = outage.beginning()
    clock.sleep(5)
    outage.worked()
    outage.failed(AWAY, begun)
    assert not outage.is_on
    outage.failed(AWAY, outage.beginning())
    assert outage.is_on
    assert len(caplog.messages) == 1


def test_what_never_worked_is_told_by_the_one_that_opens_it(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    Outage("the database", log, clock, is_owner=True).failed(AWAY)
    assert not caplog.messages


def test_a_loop_leaves_the_outage_of_a_connection_to_its_owner(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    loop = Outage("taking jobs", log, clock)
    assert loop.failed(AWAY) == 0.5
    loop.worked()
    assert not caplog.messages
    loop.failed(StoreBusy("a deadlock"))
    loop.worked()
    assert caplog.messages == [
        "taking jobs fails, and is tried again: a deadlock",
        "taking jobs works again after 0 seconds",
    ]


def test_a_bug_comes_with_its_traceback(clock: VirtualClock, caplog: pytest.LogCaptureFixture) -> None:
    loop = Outage("a sweep", log, clock)
    loop.failed(ZeroDivisionError("by zero"))
    assert caplog.records[0].exc_info is not None
    assert "ZeroDivisionError: by zero" in caplog.messages[0]
    clock.advance(timedelta(seconds=59))
    loop.failed(ZeroDivisionError("by zero"))
    assert len(caplog.messages) == 1
