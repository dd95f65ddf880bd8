"""Which legal moves of steps, phases, batches and members were taken."""

from collections.abc import Iterable

from matoolkit.domain import batch, member, phase, step
from matoolkit.simulate.recording import Entry

Move = tuple[str, str, str]


def legal_moves() -> set[Move]:
    """Return all moves that the tables of the rules allow."""
    tables = {"step": step.MOVES, "phase": phase.MOVES, "batch": batch.MOVES, "member": member.MOVES}
    return {
        (name, str(status), event.__name__)
        for name, table in tables.items()
        for status, event in table  # type: ignore[attr-defined]
    }


class Coverage:
    """Recognises moves by what was committed."""

    def __init__(self) -> None:
        self.taken: set[Move] = set()

    def see(self, entries: Iterable[Entry], *, is_person: bool) -> None:
        """Note the moves of one event."""
        for entry in entries:
            if entry.what in _MACHINES and (found := _MACHINES[entry.what](entry, is_person)) is not None:
                machine = "step" if entry.what in ("init", "rollback") else entry.what
                machine = "phase" if entry.what == "new_step" else machine
                self.taken.add((machine, entry.old or "", found))


_STEPS = {
    ("pending", "failed"): "Unsendable",
    ("polling", "dispatched"): "PollDue",
    ("dispatched", "pending"): "Failed",
    ("dispatched", "failed"): "Failed",
}
_STEPS_TO = {
    "succeeded": "Succeeded",
    "polling": "Incomplete",
    "poll_timeout": "Incomplete",
    "cancelled": "Cancelled",
    "pending": "Reopened",
}
_ERRORS = {"JobLost": "JobLost", "DeadLetter": "JobDead"}


def _step(entry: Entry, _: bool) -> str | None:
    old, new, job = entry.old or "", entry.new or "", entry.about["job"] or ""
    if (old, new) == ("pending", "dispatched"):
        return "RetryDue" if "-retry-" in job else "TurnCame"
    found = _STEPS.get((old, new)) or _STEPS_TO.get(new)
    return _ERRORS.get(entry.about["error"], found) if found == "Failed" else found


def _phase(entry: Entry, _: bool) -> str | None:
    match entry.old, entry.new:
        case "pending", "dispatched":
            return "Due"
        case _, "skipped":
            return "NobodyLeft"
        case _, "completed" | "failed":
            return "StepsEnded"
        case _, "dispatched":
            return "GivenSteps"
        case _, "superseded":
            return "Superseded"
        case _, "cancelled":
            return "BatchCancelled"
        case _:
            return None


def _batch(entry: Entry, is_person: bool) -> str | None:
    about = entry.about
    if about["init_count"] != about["old_init_count"]:
        return "PersonRetriedInit" if is_person and entry.old in ("init_dispatched", "failed") else "InitRequested"
    match entry.old, entry.new:
        case "init_dispatched", "init_dispatched":
            return "InitFailed" if about["held"] and '"init"' in (about["hold"] or "") else None
        case "init_dispatched", "failed":
            return "InitFailed"
        case "init_dispatched" | "detected", "active":
            return "InitDone"
        case (("completed" | "failed"), "active"):
            return "PersonRetriedMembers"
        case _, "cancelled":
            return "PersonCancelled" if is_person else "PhasesEnded"
        case "active", "completed" | "failed":
            return "PhasesEnded"
        case _:
            return None


def _member(entry: Entry, _: bool) -> str | None:
    match entry.old, entry.new:
        case _, "failed":
            return "StepFailed"
        case _, "removed":
            return "Removed"
        case "removed", "active":
            return "Returned"
        case "failed", "active":
            same = entry.about["epoch"] == entry.about["old_epoch"]
            return "RetriedFromFailure" if same else "RetriedFromStart"
        case _:
            return None


def _new_step(entry: Entry, _: bool) -> str | None:
    return "GivenSteps" if entry.old == "dispatched" and entry.about["expanded"] else None


_MACHINES = {
    "step": _step,
    "init": _step,
    "rollback": _step,
    "phase": _phase,
    "batch": _batch,
    "member": _member,
    "new_step": _new_step,
}
