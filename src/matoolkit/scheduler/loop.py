"""Ticks and sweeps, each on a timer of its own, until told to stop."""

import logging
import threading

from matoolkit.errors import MatoolkitError
from matoolkit.outages import Outage
from matoolkit.scheduler.leasing import Stopping
from matoolkit.scheduler.tick import Scheduler

log = logging.getLogger(__name__)


class SchedulerLoop:
    """Runs a scheduler. A tick that takes longer than the interval is followed by the next; two never overlap."""

    def __init__(self, scheduler: Scheduler, sweep_seconds: float, speed: int = 1) -> None:
        self._scheduler = scheduler
        # The interval is one of the calendar, which may run faster than the clock (rule U5).
        self._interval = scheduler.interval.total_seconds() / speed
        self._sweep_seconds = sweep_seconds
        self._ticks = Outage("a tick", log, scheduler.clock)
        self._sweeps = Outage("a sweep", log, scheduler.clock)

    def tick_until(self, stop: threading.Event) -> None:
        """Tick every interval; while another scheduler works, look often whether it still does."""
        while not stop.is_set():
            began = self._scheduler.clock.monotonic()
            pause = self._interval if self._tick() else self._sweep_seconds
            stop.wait(max(0.0, pause - (self._scheduler.clock.monotonic() - began)))

    def sweep_until(self, stop: threading.Event) -> None:
        """Ask for polls and retries that are due, and make the lease last, also while a tick takes long."""
        while not stop.wait(self._sweep_seconds):
            try:
                self._scheduler.sweep()
            except Stopping:
                return
            except MatoolkitError as error:
                self._sweeps.failed(error)
            else:
                self._sweeps.worked()

    def _tick(self) -> bool:
        try:
            is_ours = self._scheduler.tick() is not None
        except Stopping:
            log.info("the tick was interrupted; the next one goes on where it was")
        except MatoolkitError as error:
            self._ticks.failed(error)
        else:
            self._ticks.worked()
            return is_ours
        return False
