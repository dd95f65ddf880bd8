"""The scheduler as a function app.

Its two functions may run in different processes, and the host may end either at any moment. So each call takes the
lease and lets it go. If the host ends a process within a call, the lease runs out after a minute and a half, and the
next tick goes on from what the state says (rules T1 and T10).
"""

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import azure.functions as func

from matoolkit.clock import Clock, SystemClock
from matoolkit.hosting.functions.starting import (
    EVERY_FIVE_MINUTES,
    EVERY_HALF_MINUTE,
    Lazily,
    Opened,
    OpenParts,
    begun,
    opened,
    settings_of_app,
    sweep_each,
)
from matoolkit.scheduler.loop import SchedulerLoop
from matoolkit.scheduler.tick import Scheduler
from matoolkit.settings import Settings
from matoolkit.system import build_scheduler

# The timer decides when ticks come, whatever MATOOLKIT_TICK_SECONDS says.
TICK_SECONDS = 300
# A lease lasts three sweeps. A tick waits longer than that for one, so only a scheduler that is at work keeps it away.
_SWEEPS_WAITED = 4
_LOOK_SECONDS = 5.0

log = logging.getLogger(__name__)


class TimedScheduler:
    """A scheduler that works only while it is called."""

    def __init__(self, settings: Settings, parts: Opened, environ: Mapping[str, str], clock: Clock) -> None:
        self._sweep_seconds = settings.sweep_seconds
        self._parts = parts
        self._clock = clock
        with_timer = settings.model_copy(update={"tick_seconds": TICK_SECONDS})
        self._build: Callable[[threading.Event], Scheduler] = partial(
            build_scheduler, with_timer, parts.store, parts.messaging.publisher, environ, clock
        )

    def tick(self) -> None:
        """Look at every runbook once. Sweeps beside it make the lease last while a source takes long to answer."""
        stop = threading.Event()
        scheduler = self._build(stop)
        if not self._has_lease(scheduler):
            log.info("another scheduler is at work, so this tick does nothing")
            return
        with _sweeping(scheduler, self._sweep_seconds, stop):
            scheduler.tick()

    def sweep(self) -> None:
        """Ask for what is due, unless a tick is at work, which does it too; send what waits in the outbox."""
        scheduler = self._build(threading.Event())

        def ask() -> None:
            try:
                scheduler.sweep()
            finally:
                scheduler.lease.let_go()

        sweep_each([ask, *self._parts.messaging.sweeps])

    def _has_lease(self, scheduler: Scheduler) -> bool:
        """Take the lease; the other function has it for moments, a scheduler that died for a minute and a half."""
        ends_at = self._clock.monotonic() + _SWEEPS_WAITED * self._sweep_seconds
        while not scheduler.lease.hold():
            if self._clock.monotonic() >= ends_at:
                return False
            self._clock.sleep(_LOOK_SECONDS)
        return True


@contextmanager
def _sweeping(scheduler: Scheduler, seconds: float, stop: threading.Event) -> Iterator[None]:
    """Sweep beside a block, and let the lease go in the end."""
    loop = SchedulerLoop(scheduler, seconds)
    thread = threading.Thread(target=loop.sweep_until, args=(stop,), name="sweeps", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        scheduler.lease.let_go()


def scheduler_app(
    environ: Mapping[str, str] = os.environ, clock: Clock | None = None, open_parts: OpenParts = opened
) -> func.FunctionApp:
    """Return the functions of the scheduler."""
    settings = settings_of_app(environ)

    def made() -> TimedScheduler:
        parts = begun(settings, "scheduler", environ, open_parts)
        return TimedScheduler(settings, parts, environ, clock or SystemClock())

    scheduler = Lazily(made)
    app = func.FunctionApp()

    @app.function_name("tick")
    @app.timer_trigger("timer", EVERY_FIVE_MINUTES, run_on_startup=False, use_monitor=True)
    def tick(timer: func.TimerRequest) -> None:  # noqa: ARG001 - the host gives it
        scheduler().tick()

    @app.function_name("sweep")
    @app.timer_trigger("timer", EVERY_HALF_MINUTE, run_on_startup=False, use_monitor=False)
    def sweep(timer: func.TimerRequest) -> None:  # noqa: ARG001 - the host gives it
        scheduler().sweep()

    return app
