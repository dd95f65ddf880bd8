"""A scheduler as a process of its own."""

import logging
import threading
from contextlib import ExitStack
from functools import partial

from matoolkit.hosting.process import run_parts, sweep_regularly
from matoolkit.hosting.telemetry import telemetry_of
from matoolkit.scheduler.leasing import Stopping
from matoolkit.scheduler.loop import SchedulerLoop
from matoolkit.scheduler.tallies import Tally
from matoolkit.settings import Settings
from matoolkit.system import build_scheduler, open_bus, open_state

log = logging.getLogger(__name__)


def run_scheduler(settings: Settings, stop: threading.Event) -> None:
    """Tick and sweep until told to stop; the transaction at hand is finished, and the lease let go."""
    with ExitStack() as stack:
        stack.enter_context(telemetry_of(settings, "scheduler"))
        store = open_state(settings)
        stack.callback(store.close)
        messaging = open_bus(settings, store)
        stack.callback(messaging.bus.stop)
        scheduler = build_scheduler(settings, store, messaging.publisher, stop=stop)
        stack.callback(scheduler.lease.let_go)
        loop = SchedulerLoop(scheduler, settings.sweep_seconds)
        run_parts(
            {
                "ticks": loop.tick_until,
                "sweeps": loop.sweep_until,
                "bus": partial(sweep_regularly, messaging.sweeps, settings.sweep_seconds),
            },
            stop,
        )


def tick_once(settings: Settings, stop: threading.Event) -> list[Tally] | None:
    """Tick once and say what was done; nothing if another scheduler works. Told to stop, it ends as Ctrl-C ends it."""
    done: list[list[Tally] | None] = []
    with ExitStack() as stack:
        stack.enter_context(telemetry_of(settings, "scheduler"))
        store = open_state(settings)
        stack.callback(store.close)
        messaging = open_bus(settings, store)
        stack.callback(messaging.bus.stop)
        scheduler = build_scheduler(settings, store, messaging.publisher, stop=stop)
        stack.callback(scheduler.lease.let_go)
        loop = SchedulerLoop(scheduler, settings.sweep_seconds)

        def tick(until: threading.Event) -> None:
            try:
                done.append(scheduler.tick())
            except Stopping:
                log.info("the tick was interrupted; the next one goes on where it was")
            finally:
                until.set()

        # The sweeps make the lease last while a source takes long to answer.
        run_parts({"tick": tick, "sweeps": loop.sweep_until}, stop)
    if not done:
        raise KeyboardInterrupt
    return done[0]
