"""Every answer of a system whose calendar runs faster than the clock says so (rule U5)."""

from dataclasses import replace
from datetime import timedelta

import httpx
import pytest

from matoolkit.clock import FastClock, Pace, VirtualClock
from matoolkit.doors.services import Services
from tests.servers.api import serving

pytestmark = pytest.mark.on("sqlite")


@pytest.mark.parametrize(("path", "status"), [("/api/batches", 200), ("/api/batches/99", 404), ("/healthz", 200)])
def test_u5_every_answer_has_the_speed_and_the_time_of_the_calendar(
    services: Services, clock: VirtualClock, path: str, status: int
) -> None:
    fast = FastClock(clock, Pace(1440, clock.now()))
    clock.advance(timedelta(minutes=2))
    with serving(replace(services, clock=fast)) as address:
        answer = httpx.get(address + path)
    assert answer.status_code == status
    assert answer.headers["Matoolkit-Speed"] == "1440"
    assert answer.headers["Matoolkit-Now"] == fast.now().isoformat().replace("+00:00", "Z")


def test_at_the_pace_of_the_clock_nothing_is_said(services: Services) -> None:
    with serving(services) as address:
        assert "Matoolkit-Speed" not in httpx.get(f"{address}/api/batches").headers
