"""Which jobs are out: by what workers took and what lies on the bus, whatever the system believes (rules O3, O5, O16).

A job is out from its dispatch until its result was handled, the bus put it aside, or its time was up. One that was
taken back before a worker got it never was.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.processes import Plant
from matoolkit.simulate.recording import Entry
from matoolkit.store.dialect.types import stored_text

_TABLES = {"step": "step_executions", "init": "init_executions", "rollback": "rollback_executions"}
_RESULT = "result-"


@dataclass(frozen=True, slots=True)
class _Job:
    """A job that was dispatched, and whose turn it takes: a person's, or an init's."""

    name: str
    kind: str
    execution: int
    whose: str
    lost_at: str


class Jobs:
    """Follows every job from its dispatch to its end."""

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._unfinished: dict[str, _Job] = {}
        self._taken: set[str] = set()
        self._latest = ""

    def see(self, entries: Iterable[Entry], taken: Collection[str], message_ids: Collection[str]) -> None:
        """Look at what one event committed, at what workers took in it, and at what is on its way after it."""
        self._taken.update(taken)
        # If the clock jumps back, a job that counted as lost stays lost.
        self._latest = max(self._latest, stored_text(self._plant.clock.now()))
        self._drop_what_is_over()
        seen = self._taken | set(message_ids)
        for entry in entries:
            if entry.what == "new_member":
                self._see_joining(entry, seen)
            elif entry.what == "handled" and (entry.new or "").startswith(_RESULT):
                self._unfinished.pop((entry.new or "").removeprefix(_RESULT), None)
            elif entry.what in _TABLES and entry.new == "dispatched":
                self._see_dispatch(entry, seen)
        for job in self._unfinished.values():
            if job.name in seen:
                self._demand_known(job)

    def _see_joining(self, entry: Entry, seen: Collection[str]) -> None:
        whose = entry.about["key"].casefold()
        for other in self._unfinished.values():
            if other.whose == whose and other.name in seen:
                raise Violation(f"{whose} joins batch {entry.about['batch']} while its job {other.name} is out")

    def _see_dispatch(self, entry: Entry, seen: Collection[str]) -> None:
        about = entry.about
        whose = about.get("key") or f"the init of batch {about['batch']}"
        for other in self._unfinished.values():
            if other.whose == whose and other.name in seen:
                raise Violation(f"{about['job']} was dispatched while {other.name} of {whose} is out: {about}")
        self._unfinished[about["job"]] = _Job(about["job"], entry.what, entry.id, whose, about["lost_at"])

    def _drop_what_is_over(self) -> None:
        lost = {job.name for job in self._unfinished.values() if job.lost_at <= self._latest}
        for database in self._plant.databases():
            lost.update(name for (name,) in database.look("SELECT message_id FROM dead_letters"))
        for name in lost:
            self._unfinished.pop(name, None)

    def _demand_known(self, job: _Job) -> None:
        """Demand that the system still waits for a job that is out."""
        waiting = f"SELECT 1 FROM {_TABLES[job.kind]} WHERE id = {job.execution} AND job_id = '{job.name}'"
        if not self._plant.state.look(f"{waiting} AND lost_at IS NOT NULL"):
            raise Violation(f"{job.name} of {job.whose} is out, and the system no longer waits for it")
