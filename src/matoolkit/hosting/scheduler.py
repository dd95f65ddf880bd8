"""A scheduler as a process of its own."""

from matoolkit.bus.sweeper import sweep_regularly
from matoolkit.hosting.process import run_parts, stopped_by_signals
from matoolkit.scheduler.loop import SchedulerLoop
from matoolkit.scheduler.tallies import Tally
from matoolkit.settings import Settings
from matoolkit.system import build_scheduler, open_bus, open_state


def run_scheduler(settings: Settings) -> None:
    """Tick and sweep until a signal comes; the transaction at hand is finished, and the lease let go."""
    with stopped_by_signals() as stop:
        store = open_state(settings)
        bus = open_bus(settings, store)
        scheduler = build_scheduler(settings, store, bus, stop=stop)
        loop = SchedulerLoop(scheduler, settings.sweep_seconds)
        run_parts(
            {
                "ticks": loop.tick_until,
                "sweeps": loop.sweep_until,
                "bus": lambda until: sweep_regularly([bus.sweep], settings.sweep_seconds, until),
            },
            stop,
        )
        scheduler.lease.let_go()
        store.close()


def tick_once(settings: Settings) -> list[Tally] | None:
    """Tick once and say what was done; nothing if another scheduler works."""
    tallies: list[list[Tally] | None] = []
    with stopped_by_signals() as stop:
        store = open_state(settings)
        scheduler = build_scheduler(settings, store, open_bus(settings, store), stop=stop)
        loop = SchedulerLoop(scheduler, settings.sweep_seconds)

        def tick(until: object) -> None:  # noqa: ARG001 - it ends by itself
            try:
                tallies.append(scheduler.tick())
            finally:
                stop.set()

        # The sweeps make the lease last while a source takes long to answer.
        run_parts({"tick": tick, "sweeps": loop.sweep_until}, stop)
        scheduler.lease.let_go()
        store.close()
    return tallies[0]
