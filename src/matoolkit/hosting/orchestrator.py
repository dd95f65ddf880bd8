"""An orchestrator as a process of its own; any number of them may run beside each other."""

import threading
from collections.abc import Callable, Mapping
from functools import partial

from matoolkit.bus.consumer import Consumer
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR
from matoolkit.hosting.process import Part, run_parts, sweep_regularly
from matoolkit.hosting.telemetry import telemetry_of
from matoolkit.orchestrator import Orchestrator
from matoolkit.settings import Settings
from matoolkit.store import Store
from matoolkit.system import Messaging, build_orchestrator, open_bus, open_state


def run_orchestrator(settings: Settings, stop: threading.Event) -> None:
    """Handle events and results, and sweep, until told to stop; the piles at hand are finished."""
    store = open_state(settings)
    messaging = open_bus(settings, store)
    messaging.bus.start()
    try:
        with telemetry_of(settings, "orchestrator", watched=store):
            run_parts(orchestrator_parts(settings, store, messaging), stop)
    finally:
        messaging.bus.stop()
        store.close()


def orchestrator_parts(settings: Settings, store: Store, messaging: Messaging) -> Mapping[str, Part]:
    """Return what an orchestrator does side by side."""
    bus, orchestrator = messaging.bus, build_orchestrator(settings, store, messaging.publisher)
    return {
        "events": Consumer(store, bus, EVENTS_OF_ORCHESTRATOR, orchestrator.handle).run,
        "results": Consumer(store, bus, RESULTS_OF_ORCHESTRATOR, orchestrator.handle).run,
        "sweeps": partial(sweep_regularly, sweeps_of(orchestrator, messaging), settings.sweep_seconds),
    }


def sweeps_of(orchestrator: Orchestrator, messaging: Messaging) -> list[Callable[[], object]]:
    """Return what an orchestrator does again and again, whether or not messages come."""
    # Draining is last: while the bus is away it takes long, and it makes nothing else wait.
    draining = [messaging.drain.sweep] if messaging.drain else []
    return [*messaging.sweeps, orchestrator.sweep, *draining]
