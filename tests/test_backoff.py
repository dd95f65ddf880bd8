"""When to try again (rule W4): what a service asks for, waits that grow, and the end of all tries."""

from datetime import timedelta

import httpx
import pytest

from matoolkit.backoff import LONGEST_ASKED_FOR, Backoff, Tries, asked_wait
from matoolkit.clock import VirtualClock
from matoolkit.settings import WorkerSettings
from matoolkit.worker.clients.choice import backoff_of
from tests.databases import NOON

LATER = NOON + timedelta(seconds=90)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOON)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": " 0 "}, 0),
        ({"Retry-After": "2.5"}, 2.5),
        ({"Retry-After": f"{LATER:%a, %d %b %Y %H:%M:%S GMT}"}, 90),
        ({"Retry-After": f"{NOON - timedelta(hours=1):%a, %d %b %Y %H:%M:%S GMT}"}, 0),
        ({"Retry-After": "999999"}, 999999),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-5"}, None),
        ({}, None),
        ({"Rate-Limit-Reset": "30"}, 30),
        ({"Rate-Limit-Reset": LATER.isoformat()}, 90),
        ({"Rate-Limit-Reset": str(int(LATER.timestamp()))}, 90),
        ({"Retry-After": "5", "Rate-Limit-Reset": "30"}, 5),
        ({"retry-after": "5"}, 5),
    ],
)
def test_w4_what_a_service_asks_for(clock: VirtualClock, headers: dict[str, str], seconds: float | None) -> None:
    assert asked_wait(httpx.Headers(headers), clock) == seconds


def test_w4_a_date_is_told_by_the_services_own_clock(clock: VirtualClock) -> None:
    """This machine is an hour ahead: by its own clock the moment has long passed."""
    clock.sleep(3600)
    headers = {"Retry-After": f"{LATER:%a, %d %b %Y %H:%M:%S GMT}", "Date": f"{NOON:%a, %d %b %Y %H:%M:%S GMT}"}
    assert asked_wait(headers, clock) == 90


def test_w4_waits_grow_and_are_bounded() -> None:
    backoff = backoff_of(WorkerSettings.model_validate({}))
    assert (backoff.count, backoff.first_seconds, backoff.longest_seconds) == (5, 2, 120)
    assert [backoff.longest(tries) for tries in (1, 2, 3, 7, 5000)] == [2, 4, 8, 120, 120]


def test_w4_a_wait_is_drawn_between_half_of_the_longest_and_all_of_it(clock: VirtualClock) -> None:
    drawn = iter([0.0, 0.5, 1.0])
    tries = Tries(Backoff(first_seconds=2), clock, lambda: next(drawn))
    assert [tries.failed() for _ in range(3)] == [1, 3, 8]


def test_w4_a_service_gets_what_it_asks_for_up_to_a_limit(clock: VirtualClock) -> None:
    tries = Tries(Backoff(), clock, lambda: 0)
    assert [tries.failed(30), tries.failed(86400), tries.failed()] == [30, LONGEST_ASKED_FOR, 4]


def test_w4_tries_are_used_up_after_their_number(clock: VirtualClock) -> None:
    tries = Tries(Backoff(count=2), clock)
    ends = []
    for _ in range(3):
        tries.failed()
        ends.append(tries.are_used_up)
    assert ends == [False, False, True]
    assert tries.count == 3


@pytest.mark.parametrize(("asked", "is_over"), [(19, False), (20, False), (21, True)])
def test_w4_a_wait_beyond_the_end_of_all_tries_is_not_begun(clock: VirtualClock, asked: float, is_over: bool) -> None:
    tries = Tries(Backoff(total_seconds=30), clock)
    clock.sleep(10)
    assert tries.failed(asked) == asked
    assert tries.are_used_up is is_over
