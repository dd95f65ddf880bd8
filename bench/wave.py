"""A batch of many members whose only phase is due, and our system at work on it: alone, or in several processes."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from bench.measuring import CLOCK, NOW
from matoolkit.admin.publishing import publish
from matoolkit.bus.consumer import Consumer
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR
from matoolkit.domain.messages import PhaseDue
from matoolkit.domain.states import BatchStatus
from matoolkit.hosting.orchestrator import orchestrator_parts
from matoolkit.hosting.process import run_parts, spare_the_collector
from matoolkit.ids import phase_due_id
from matoolkit.orchestrator import Orchestrator
from matoolkit.ports import Outgoing
from matoolkit.settings import Settings, WorkerSettings
from matoolkit.store import Store
from matoolkit.store.batches import NewBatch, batches_by_id, insert_batches
from matoolkit.store.members import NewMember, insert_members
from matoolkit.store.phases import NewPhase, dispatch_phases, insert_phases
from matoolkit.system import Messaging, build_worker
from matoolkit.worker import Context, Registry, function
from matoolkit.worker.masking import Masking
from matoolkit.worker.runner import Runner

WORKER = "worker-01"
RUNBOOK = """
name: NAME
data_source:
  type: sql
  connection: SOURCE
  query: SELECT email, cutover, name, note FROM people
  primary_key: email
  batch_time_column: cutover
phases:
  - name: cutover
    offset: T-0
    steps:
"""
STEP = """
      - name: step-NUMBER
        worker_id: worker-01
        function: Set-EntraUserAttributes
        params: {UserId: "{{email}}", Attributes: {displayName: "{{name}}", note: "{{note}}"}}
"""
_MADE_AT_ONCE = 5_000


class Wave:
    """A batch of many members, made but not yet begun."""

    def __init__(self, store: Store, members: int, steps: int) -> None:
        self._store = store
        name = f"wave-{members}-{CLOCK.monotonic()}".replace(".", "-")
        text = RUNBOOK.replace("NAME", name) + "".join(STEP.replace("NUMBER", str(n)) for n in range(steps))
        row = publish(store, text, by="bench", now=NOW).row
        assert row is not None
        self._runbook = row
        with store.transaction() as tx:
            self.batch_id = insert_batches(tx, [NewBatch(row.id, row.name, NOW, BatchStatus.ACTIVE)], NOW)[0].id
        for first in range(0, members, _MADE_AT_ONCE):
            people = [self._member(n) for n in range(first, min(first + _MADE_AT_ONCE, members))]
            with store.transaction() as tx:
                insert_members(tx, people, NOW)

    def begin(self, bus: SqlBus) -> None:
        """Say that the phase is due."""
        with self._store.transaction() as tx:
            phase = insert_phases(tx, [NewPhase(self.batch_id, self._runbook.version, "cutover", 0, 0, NOW)])[0]
            dispatch_phases(tx, [phase.id], NOW)
            due = PhaseDue(self.batch_id, self._runbook.name, self._runbook.version, "cutover", phase.id)
            bus.publish(tx, [Outgoing(phase_due_id(phase.id, 1), due)])

    def is_completed(self) -> bool:
        """Whether the batch went through."""
        with self._store.reading() as tx:
            return batches_by_id(tx, [self.batch_id])[0].status is BatchStatus.COMPLETED

    def _member(self, number: int) -> NewMember:
        data = {"email": f"user{number}@contoso.com", "name": f"User Number {number}", "note": "n" * 200}
        return NewMember(self.batch_id, data["email"], json.dumps(data), "hash", caught_up_at=NOW - timedelta(days=5))


def pretender(bus: SqlBus) -> Runner:
    """Make a worker whose functions answer at once; it waits for more when there is nothing to do."""
    registry = Registry()
    registry.register(_answer_at_once)
    return build_worker(bus, WorkerSettings(idle_timeout_seconds=0), WORKER, registry, Masking())


@function("Set-EntraUserAttributes")
def _answer_at_once(_: Context, user_id: str, attributes: dict[str, Any]) -> bool:
    return bool(user_id and attributes)


@contextmanager
def in_threads(store: Store, bus: SqlBus) -> Iterator[None]:
    """Run orchestrator and worker in threads of this process, as `matoolkit up` does, until this is left."""
    stop = threading.Event()
    parts = {**orchestrator_parts(Settings(), store, Messaging(bus, bus)), "worker": pretender(bus).run}
    system = threading.Thread(target=run_parts, args=(parts, stop))
    bus.start()
    system.start()
    try:
        yield
    finally:
        stop.set()
        system.join()
        bus.stop()


class Embedded:
    """Orchestrator and worker in one thread, taking turns."""

    def __init__(self, store: Store) -> None:
        spare_the_collector()
        self.bus = SqlBus(store)
        handle = Orchestrator(store, self.bus).handle
        self._events = Consumer(store, self.bus, EVENTS_OF_ORCHESTRATOR, handle)
        self._results = Consumer(store, self.bus, RESULTS_OF_ORCHESTRATOR, handle)
        self._worker = pretender(self.bus)

    def run(self) -> None:
        """Take turns until nothing is left to do."""
        while self._events.turn() + self._worker.turn() + self._results.turn():
            pass
