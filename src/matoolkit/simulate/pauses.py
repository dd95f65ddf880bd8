"""People who pause and resume: everything, a batch, a runbook, a worker, or somebody (rules G2 to G8)."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

from matoolkit.admin.gating import Subject, open_gate, pause, resume, subject_of
from matoolkit.ports import Publisher
from matoolkit.simulate.processes import Plant
from matoolkit.simulate.runbooks import NAME
from matoolkit.simulate.takenback import none_is_left
from matoolkit.store import Store
from matoolkit.store.gatekeeping import GateRow, unopened_gates

_BY = "ann"


class Pauses:
    """Pauses and resumes."""

    def __init__(self, plant: Plant, rng: Random, store: Store, publisher: Publisher) -> None:
        self._plant, self._rng = plant, rng
        self._store, self._publisher = store, publisher

    def wishes(self) -> list[tuple[int, Callable[[], str]]]:
        """Return what they may do, and how often they do it."""
        is_paused = bool(self._look("SELECT 1 FROM gates WHERE opened_at IS NULL AND hold_key IS NULL LIMIT 1"))
        return [(14, self.pause), (25 if is_paused else 0, self.resume)]

    def pause(self) -> str:
        """Pause something; afterwards no job that it covers lies where a worker would find it (rule G4)."""
        rng = self._rng
        subject = rng.choice(self._subjects())
        let_finish = subject.worker_id is None and rng.random() < 0.25
        until = self._plant.clock.now() + timedelta(seconds=rng.choice([40, 700, 9000])) if rng.random() < 0.3 else None
        shut = partial(pause, self._store, self._publisher, subject, by=_BY, reason="wait")
        done = shut(let_finish=let_finish, until=until)
        if not let_finish:
            none_is_left(self._plant, done.gate.id)
        return f"pauses {subject} by gate {done.gate.id}: {done.jobs.taken_back} taken back, {done.jobs.out} out"

    def resume(self) -> str:
        """Resume something that is paused, by what it is about or by its gate."""
        gates = self._unopened()
        gate = self._rng.choice(gates)
        subject = subject_of(gate)
        if self._rng.random() < 0.5:
            done = resume(self._store, self._publisher, subject, by=_BY, reason=None)
        else:
            done = open_gate(self._store, self._publisher, gate.id, by=_BY, reason=None)
        return f"resumes {subject} at gates {[one.id for one in done.opened]}"

    def resume_all(self) -> list[Callable[[], str]]:
        """Return what opens everything, one after the other."""
        return [partial(self._open, gate.id) for gate in self._unopened()]

    def _open(self, gate_id: int) -> str:
        open_gate(self._store, self._publisher, gate_id, by=_BY, reason="go on")
        return f"opens gate {gate_id}"

    def _unopened(self) -> list[GateRow]:
        with self._store.reading() as tx:
            return unopened_gates(tx)

    def _subjects(self) -> list[Subject]:
        batches = self._look("SELECT id FROM batches WHERE status IN ('detected', 'init_dispatched', 'active')")
        people = self._look("SELECT DISTINCT member_key FROM batch_members ORDER BY member_key")
        workers = self._look("SELECT DISTINCT worker_id FROM step_executions ORDER BY worker_id")
        return [
            Subject(),
            Subject(runbook_name=NAME),
            *(Subject(batch_id=number) for (number,) in batches),
            *(Subject(worker_id=worker) for (worker,) in workers),
            *(Subject(runbook_name=NAME, member_key=key) for (key,) in people[:3]),
        ]

    def _look(self, query: str) -> list[tuple[Any, ...]]:
        return self._plant.state.look(query)
