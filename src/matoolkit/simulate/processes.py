"""The processes of the system: after a crash a new one starts, and knows only what is in the database."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from random import Random

from matoolkit.bus.consumer import Consumer
from matoolkit.bus.draining import Drain
from matoolkit.bus.relay import Relay
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR
from matoolkit.clock import VirtualClock
from matoolkit.orchestrator import Orchestrator
from matoolkit.orchestrator.agenda import Limits
from matoolkit.ports import Delivery, Publisher, Source
from matoolkit.runbook.model import DataSource
from matoolkit.scheduler.leasing import SchedulerLease
from matoolkit.scheduler.tick import Scheduler
from matoolkit.simulate.apart import BusApart, LettersApart
from matoolkit.simulate.database import MemoryDatabase, WatchedStore, memory_database
from matoolkit.simulate.faults import Faults, FaultyBus
from matoolkit.simulate.mail import Mail
from matoolkit.store import Transaction
from matoolkit.store.dialect.types import stored_text

TICK = timedelta(minutes=5)
LEASE = timedelta(seconds=90)
# Small, so that a phase of a few members is expanded in several slices.
_LIMITS = Limits(step_timeout=timedelta(hours=6), throttle_limit=timedelta(hours=3), slice_size=3)


class Plant:
    """The databases, and what every process is built from."""

    def __init__(self, clock: VirtualClock, rng: Random, faults: Faults, *, is_apart: bool) -> None:
        self.clock = clock
        self.rng = rng
        self.faults = faults
        self.is_apart = is_apart
        self.state = memory_database("state")
        self.state.emptied()
        self.messages = memory_database("bus") if is_apart else self.state
        if is_apart:
            self.messages.emptied()
        self.mail = Mail(self.state, self.messages)
        self.trespasses: list[str] = []

    def databases(self) -> Sequence[MemoryDatabase]:
        """Return the databases that hold messages."""
        return (self.state, self.messages) if self.is_apart else (self.state,)

    def publisher(self, store: WatchedStore) -> Publisher:
        """Return what a process publishes with: the bus itself, or an outbox and a relay to it."""
        bus_store = self.messages.open(self.clock)
        return Relay(store, SqlBus(bus_store)) if self.is_apart else SqlBus(store)

    def faulty_bus(self, store: WatchedStore, meanwhile: Callable[[], None]) -> FaultyBus:
        """Return the bus from which a process receives."""
        own = self.messages.open(self.clock) if self.is_apart else store
        return FaultyBus(own, self.faults, self.rng, meanwhile)

    def plain_bus(self) -> SqlBus:
        """Return the bus as the workers use it."""
        store = self.messages.open(self.clock)
        return BusApart(store, self.faults) if self.is_apart else SqlBus(store)

    def letters(self) -> LettersApart:
        """Return the dead letters of a bus that is apart."""
        return LettersApart(self.messages.open(self.clock))


class SchedulerProcess:
    """A scheduler."""

    def __init__(self, plant: Plant, name: str, source: Source) -> None:
        self._plant = plant
        self._name = name
        self.store = plant.state.open(plant.clock)
        # A dead process may have left messages in the outbox. Any process may send them without a lease.
        self.store.inspect = None if plant.is_apart else self._inspect
        lease = SchedulerLease(self.store, name, LEASE)

        def open_source(_: DataSource) -> Source:
            return source

        publisher = plant.publisher(self.store)
        self.scheduler = Scheduler(self.store, publisher, open_source, plant.clock, lease, TICK)

    def _inspect(self, changes: int) -> None:
        """Note changes by a scheduler that has no lease (rule T10)."""
        now = stored_text(self._plant.clock.now())
        held = f"SELECT 1 FROM leases WHERE holder = '{self._name}' AND expires_at > '{now}'"
        if changes and not self._plant.state.look(held):
            self._plant.trespasses.append(f"{self._name} changes {changes} rows and has no lease")


class OrchestratorProcess:
    """An orchestrator with its two consumers."""

    def __init__(self, plant: Plant, meanwhile: Callable[[], None]) -> None:
        self.store = plant.state.open(plant.clock)
        publisher = plant.publisher(self.store)
        self.relay = publisher if isinstance(publisher, Relay) else None
        self.drain = Drain(self.store, plant.letters()) if plant.is_apart else None
        bus = plant.faulty_bus(self.store, meanwhile)
        self.orchestrator = Orchestrator(self.store, publisher, _LIMITS)

        def handle(tx: Transaction, deliveries: Sequence[Delivery]) -> None:
            # What follows from a result is written down after it.
            plant.mail.note_handled(deliveries)
            self.orchestrator.handle(tx, deliveries)

        self.events = Consumer(self.store, bus, EVENTS_OF_ORCHESTRATOR, handle, most=20)
        self.results = Consumer(self.store, bus, RESULTS_OF_ORCHESTRATOR, handle, most=5)
