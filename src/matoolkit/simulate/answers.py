"""Every outcome of work comes from exactly its job: from a worker, the bus, or the time (rules O4, O16, M7)."""

from collections.abc import Iterable, Mapping

import orjson

from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.processes import Plant
from matoolkit.simulate.recording import Entry
from matoolkit.simulate.wallclocks import is_window_open
from matoolkit.store.dialect.types import stored_text

_LIES = "SELECT 1 FROM {} WHERE message_id = '{}'"
_SHUT = "SELECT 1 FROM gates WHERE reach = 'send' LIMIT 1"
_WINDOW = """
SELECT r.rules -> '$.window' FROM phase_executions p JOIN sim_rules r ON r.version = p.runbook_version
AND r.place = p.phase_index WHERE p.id = {phase} AND r.rules ->> '$.window.binds' = 'every_job'
"""
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
        if entry.old == "dispatched" and not entry.about["answered"] and _is_taken_back(entry, plant):
            continue
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


def _is_taken_back(entry: Entry, plant: Plant) -> bool:
    """Tell whether a gate or a window took a job back: it lies nowhere any more, and no try was used up (rule G4)."""
    if entry.new not in ("pending", "polling") or entry.about["tries"] or entry.about["lost_at"] is not None:
        return False
    lies = [table for table in ("bus_messages", "outbox") if plant.state.look(_LIES.format(table, entry.about["job"]))]
    return not lies and (bool(plant.state.look(_SHUT)) or _has_window_shut(entry, plant))


def _has_window_shut(entry: Entry, plant: Plant) -> bool:
    """Tell whether a step's phase has a window that binds every job and is shut (rule K2)."""
    if entry.what != "step":
        return False
    windows = plant.state.look(_WINDOW.format(phase=entry.about["phase"]))
    return any(not is_window_open(orjson.loads(window), plant.clock.now()) for (window,) in windows)
