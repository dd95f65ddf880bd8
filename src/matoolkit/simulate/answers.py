"""Every outcome of work comes from exactly its job: from a worker, the bus, or the time (rules O4, O16, M7)."""

from collections.abc import Iterable, Mapping

from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.processes import Plant
from matoolkit.simulate.recording import Entry
from matoolkit.store.dialect.types import stored_text

_WORK = ("step", "init", "rollback")
_FAILING = {"failed", "throttled", "incomplete"}
_SAYINGS = {
    "succeeded": {"done"},
    "polling": {"incomplete"},
    "poll_timeout": {"incomplete"},
    "failed": _FAILING,
    "pending": _FAILING,
}


def answers_are_true(entries: Iterable[Entry], said: Mapping[str, set[str]], plant: Plant) -> None:
    """Demand that every outcome has a source: an answer for the job that is waited for."""
    for entry in entries:
        if entry.what not in _WORK or entry.new not in _SAYINGS or entry.old == entry.new:
            continue
        job, error = entry.about["job"], entry.about["error"]
        match entry.old, entry.new, error:
            case "dispatched", "failed" | "pending", "JobLost":
                is_true = (entry.about["old_lost_at"] or "") <= stored_text(plant.clock.now())
            case "dispatched", "failed", "DeadLetter":
                is_true = bool(plant.state.look(f"SELECT 1 FROM dead_letters WHERE message_id = '{job}'"))
            # No job can be made of it, or a person lets it begin again.
            case ("pending", "failed", _) | ("failed" | "poll_timeout" | "cancelled" | "succeeded", "pending", _):
                is_true = True
            case _:
                is_true = bool(said.get(job, set()) & _SAYINGS[entry.new])
        if not is_true:
            raise Violation(f"no answer of {job} says so: {entry}, {error}; answers: {sorted(said.get(job, ()))}")
