"""Rule W4: when to come back."""

from datetime import timedelta

import httpx
import pytest

from matoolkit.settings import WorkerSettings
from matoolkit.worker.clients.pauses import LONGEST_ASKED_FOR, RetryLimits, SharedPause, asked_for
from tests.databases import NOON
from tests.worker.functions.stage import SharedClock

LATER = NOON + timedelta(seconds=90)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": " 0 "}, 0),
        ({"Retry-After": "2.5"}, 2.5),
        ({"Retry-After": f"{LATER:%a, %d %b %Y %H:%M:%S GMT}"}, 90),
        ({"Retry-After": f"{NOON - timedelta(hours=1):%a, %d %b %Y %H:%M:%S GMT}"}, 0),
        ({"Retry-After": "999999"}, LONGEST_ASKED_FOR),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-5"}, None),
        ({}, None),
        ({"Rate-Limit-Reset": "30"}, 30),
        ({"Rate-Limit-Reset": LATER.isoformat()}, 90),
        ({"Rate-Limit-Reset": str(int(LATER.timestamp()))}, 90),
        ({"Retry-After": "5", "Rate-Limit-Reset": "30"}, 5),
    ],
)
def test_w4_what_a_service_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_for(httpx.Response(429, headers=headers), SharedClock()) == seconds


def test_w4_a_date_is_told_by_the_services_own_clock() -> None:
    """This machine is an hour ahead: by its own clock the moment has long passed."""
    clock = SharedClock()
    clock.sleep(3600)
    headers = {"Retry-After": f"{LATER:%a, %d %b %Y %H:%M:%S GMT}", "Date": f"{NOON:%a, %d %b %Y %H:%M:%S GMT}"}
    assert asked_for(httpx.Response(429, headers=headers), clock) == 90


def test_w4_waits_grow_and_are_bounded() -> None:
    limits = RetryLimits.of(WorkerSettings.model_validate({}))
    assert (limits.count, limits.first_seconds, limits.longest_seconds) == (5, 2, 120)
    assert [limits.backoff(attempt, lambda: 1) for attempt in (1, 2, 3, 7, 500)] == [2, 4, 8, 120, 120]
    assert [limits.backoff(attempt, lambda: 0) for attempt in (1, 2, 7)] == [1, 2, 60]


def test_w4_a_pause_is_made_longer_never_shorter() -> None:
    clock = SharedClock()
    pause = SharedPause(clock, lambda: 0)
    pause.extend(30)
    pause.extend(5)
    pause.wait()
    assert clock.monotonic() == 30
    pause.wait()
    assert clock.monotonic() == 30


def test_w4_a_pause_that_is_made_longer_meanwhile_is_kept() -> None:
    class Restless(SharedClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if self.monotonic() == 10:
                pause.extend(5)

    clock = Restless()
    pause = SharedPause(clock, lambda: 0)
    pause.extend(10)
    pause.wait()
    assert clock.monotonic() == 15
