"""An orchestrator as a process of its own; any number of them may run beside each other."""

from functools import partial

from matoolkit.bus.consumer import Consumer
from matoolkit.bus.sweeper import sweep_regularly
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR
from matoolkit.hosting.process import Part, run_parts, stopped_by_signals
from matoolkit.settings import Settings
from matoolkit.system import build_orchestrator, open_bus, open_state


def run_orchestrator(settings: Settings) -> None:
    """Handle events and results, and sweep, until a signal comes; the piles at hand are finished."""
    store = open_state(settings)
    bus = open_bus(settings, store)
    orchestrator = build_orchestrator(settings, store, bus)
    events = Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, orchestrator.handle)
    results = Consumer(store, bus, RESULTS_OF_ORCHESTRATOR, orchestrator.handle)
    parts: dict[str, Part] = {
        "events": events.run,
        "results": results.run,
        "sweeps": partial(sweep_regularly, [bus.sweep, orchestrator.sweep], settings.sweep_seconds),
    }
    bus.start()
    try:
        with stopped_by_signals() as stop:
            run_parts(parts, stop)
    finally:
        bus.stop()
        store.close()
