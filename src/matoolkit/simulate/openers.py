"""People who freeze and thaw, and who let in what is late or in which too many have failed (rules C4, K1 and K5)."""

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

import orjson

from matoolkit.admin.freezing import shut_freeze
from matoolkit.admin.gating import Subject, open_gate
from matoolkit.ports import Publisher
from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.processes import Plant
from matoolkit.simulate.runbooks import NAME
from matoolkit.store import Store

_BY = "ann"
_UNOPENED = "SELECT id, kind FROM gates WHERE opened_at IS NULL AND hold_key IS NULL AND kind IN ({kinds}) ORDER BY id"
_OPENED = "SELECT about FROM sim_log WHERE what = 'budget_opened' AND id = {gate}"


class Openers:
    """Freezes, and gates that the system has shut."""

    def __init__(self, plant: Plant, rng: Random, store: Store, publisher: Publisher) -> None:
        self._plant, self._rng = plant, rng
        self._store, self._publisher = store, publisher

    def wishes(self) -> list[tuple[int, Callable[[], str]]]:
        """Return what they may do, and how often they do it."""
        is_frozen, is_kept = self._gates("'freeze'"), self._gates("'late', 'budget'")
        return [(4, self.freeze), (8 if is_frozen else 0, self.thaw), (20 if is_kept else 0, self.open)]

    def freeze(self) -> str:
        """Write a freeze: it begins now or later, and ends by itself, or when a person removes it."""
        rng, now = self._rng, self._plant.clock.now()
        subject = rng.choice(self._subjects())
        begins = now + timedelta(seconds=rng.choice([30, 900, 9000])) if rng.random() < 0.6 else None
        lasts = timedelta(seconds=rng.choice([300, 2000, 20_000])) if rng.random() < 0.8 else None
        until = None if lasts is None else (begins or now) + lasts
        gate = shut_freeze(
            self._store,
            subject,
            by=_BY,
            reason="the books are closed",
            begins=None if begins is None else begins.isoformat(),
            until=None if until is None else until.isoformat(),
        )
        return f"freezes {subject} by gate {gate.id} from {begins or 'now'} until {until}"

    def thaw(self) -> str:
        """Remove a freeze, whether it has begun or not."""
        gate = self._rng.choice(self._gates("'freeze'"))
        open_gate(self._store, self._publisher, gate, by=_BY, reason="done")
        return f"removes freeze {gate}"

    def open(self) -> str:
        """Let in what is late, or let some more fail; few look again before they open."""
        gate = self._rng.choice(self._gates("'late', 'budget'"))
        ((kind,),) = self._plant.state.look(f"SELECT kind FROM gates WHERE id = {gate}")
        more = self._rng.choice([None, 0, 1, 2]) if kind == "budget" else None
        open_gate(self._store, self._publisher, gate, by=_BY, reason="go on", allow=more)
        if kind == "budget":
            self._demand_allowed(gate, more or 0)
        return f"opens gate {gate} ({kind}), allowing {more}"

    def _demand_allowed(self, gate: int, more: int) -> None:
        """Demand that so many more may fail than had failed when the gate was opened (rule C4)."""
        ((text,),) = self._plant.state.look(_OPENED.format(gate=gate))
        about = orjson.loads(text)
        if about["allowed"] != about["failed"] + more:
            raise Violation(f"gate {gate} was opened for {more} more, and lets in {about} (rule C4)")

    def _subjects(self) -> list[Subject]:
        batches = self._look("SELECT id FROM batches WHERE status IN ('detected', 'init_dispatched', 'active')")
        workers = self._look("SELECT DISTINCT worker_id FROM step_executions ORDER BY worker_id")
        return [
            *(Subject(), Subject(runbook_name=NAME)),
            *(Subject(batch_id=number) for (number,) in batches),
            *(Subject(worker_id=worker) for (worker,) in workers),
        ]

    def _gates(self, kinds: str) -> list[int]:
        return [int(number) for number, _ in self._look(_UNOPENED.format(kinds=kinds))]

    def _look(self, query: str) -> list[tuple[Any, ...]]:
        return self._plant.state.look(query)
