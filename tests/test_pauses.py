"""A pause that all threads keep (rule W4)."""

from matoolkit.pauses import Pause
from tests.worker.functions.office import SharedClock


def test_w4_a_pause_is_made_longer_never_shorter() -> None:
    clock = SharedClock()
    pause = Pause(clock, lambda: 0)
    assert not pause.is_on
    pause.extend(30)
    pause.extend(5)
    assert pause.is_on
    pause.wait()
    assert clock.monotonic() == 30
    assert not pause.is_on
    pause.wait()
    assert clock.monotonic() == 30


def test_w4_a_pause_that_is_made_longer_meanwhile_is_kept() -> None:
    class Restless(SharedClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if self.monotonic() == 10:
                pause.extend(5)

    clock = Restless()
    pause = Pause(clock, lambda: 0)
    pause.extend(10)
    pause.wait()
    assert clock.monotonic() == 15


def test_w4_threads_come_back_one_after_another() -> None:
    """Each adds a little of its own, at most a second."""
    clock = SharedClock()
    pause = Pause(clock, lambda: 0.5)
    pause.extend(30)
    pause.wait()
    assert clock.monotonic() == 30.5


def test_a_pause_that_begins_anew_may_be_shorter() -> None:
    clock = SharedClock()
    pause = Pause(clock)
    pause.restart(30)
    pause.restart(10)
    clock.sleep(10)
    assert not pause.is_on
