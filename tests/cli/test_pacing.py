"""Commands say so where a calendar runs faster than the clock (rule U5)."""

from dataclasses import replace
from datetime import timedelta

import orjson
import pytest

from matoolkit.cli.program import run
from matoolkit.clock import FastClock, Pace, VirtualClock
from matoolkit.doors.services import Services
from tests.servers.api import serving
from tests.stage import Stage

pytestmark = pytest.mark.on("sqlite")
PHASES = "phases: [{name: only, offset: T-0, steps: [{name: one, worker_id: worker-01, function: One}]}]"


@pytest.fixture
def fast(services: Services, clock: VirtualClock, stage: Stage) -> Services:
    stage.batch(stage.publish(PHASES))
    hurried = FastClock(clock, Pace(1440, clock.now()))
    clock.advance(timedelta(minutes=2))
    return replace(services, clock=hurried)


def test_u5_a_batch_is_shown_with_the_time_of_its_calendar(
    fast: Services, clock: VirtualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(fast) as address:
        assert run(["batch", "get", "1", "--api-url", address], clock) == 0
    shown = capsys.readouterr()
    assert "now T-3d" in shown.out, "two minutes are two of the five days"
    said = f"time runs 1,440 times as fast as the clock: a day takes 1m; there it is {fast.clock.now():%a %d %b %Y}"
    assert said in shown.err


def test_u5_it_is_said_once_and_not_among_the_data(
    fast: Services, clock: VirtualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(fast) as address:
        assert run(["batch", "list", "--json", "--api-url", address], clock) == 0
    shown = capsys.readouterr()
    assert shown.err.count("1,440 times") == 1
    assert orjson.loads(shown.out)
