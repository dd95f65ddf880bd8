"""Which legal moves of steps, phases, batches and members were taken, and which situations were met."""

from collections.abc import Iterator, Sequence

import orjson

from matoolkit.domain import batch, member, phase, step
from matoolkit.domain.holds import HoldKind
from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.recording import Entry

Move = tuple[str, str, str]


def _targets() -> dict[Move, frozenset[str]]:
    tables = {"step": step.MOVES, "phase": phase.MOVES, "batch": batch.MOVES, "member": member.MOVES}
    return {
        (name, str(status), event.__name__): frozenset(map(str, targets))
        for name, table in tables.items()
        for (status, event), targets in table.items()  # type: ignore[attr-defined]
    }


_TARGETS = _targets()
# What makes a move a case of its own: why a batch is held, and under what a member is retried.
_UNDER_ANOTHER_VERSION: Move = ("member", "failed", "RetriedUnderAnotherVersion")
_WITH_ANOTHER_ROW: Move = ("member", "failed", "RetriedWithAnotherRow")
_STAYING_DUE: Move = ("phase", "pending", "StaysDueUnderIgnore")
_SITUATIONS: frozenset[Move] = frozenset({_UNDER_ANOTHER_VERSION, _WITH_ANOTHER_ROW, _STAYING_DUE}) | {
    ("batch", "held", str(kind)) for kind in HoldKind
}


def legal_moves() -> set[Move]:
    """Return all moves that the tables of the rules allow, and the situations that are to be met."""
    return set(_TARGETS) | _SITUATIONS


class Coverage:
    """Recognises moves by what was committed, and those that no table allows."""

    def __init__(self) -> None:
        self.taken: set[Move] = set()

    def see(self, entries: Sequence[Entry], *, by_person: bool, by_both: bool = False) -> None:
        """Note the moves of one event, made by a person, by the system, or by both in turn."""
        whose = (True, False) if by_both else (by_person,)
        for entry in entries:
            self.taken.update(_situations(entry))
            if entry.what not in _MACHINES or (entry.old == entry.new and entry.what not in ("batch", "new_step")):
                continue
            found = {_MACHINES[entry.what](entry, is_person) for is_person in whose}
            moves = [(_NAMES.get(entry.what, entry.what), entry.old or "", event) for event in found if event]
            legal = [move for move in moves if entry.what == "new_step" or entry.new in _TARGETS.get(move, ())]
            if not legal and entry.old != entry.new and entry.what != "new_step":
                raise Violation(f"no rule allows this move: {entry}")
            if len(legal) == 1:
                self.taken.update(legal)
        self._see_retries(entries)

    def _see_retries(self, entries: Sequence[Entry]) -> None:
        """Note that a person let members try again of a batch that went on and did not change by it."""
        reopened = {entry.id for entry in entries if entry.what == "batch" and entry.new == "active"}
        retried = {entry.about["batch"] for entry in entries if _is_retry(entry)}
        if retried - reopened:
            self.taken.add(("batch", "active", "PersonRetriedMembers"))
        if {entry.id for entry in entries if _is_retry(entry)} & {entry.id for entry in entries if entry.what == "row"}:
            self.taken.add(_WITH_ANOTHER_ROW)


def _situations(entry: Entry) -> Iterator[Move]:
    about = entry.about
    if entry.what == "batch" and about["held"] and not about["was_held"]:
        yield ("batch", "held", orjson.loads(about["hold"] or "{}").get("kind", ""))
    if _is_retry(entry) and about["failed_under"] not in (None, about["follows"]):
        yield _UNDER_ANOTHER_VERSION
    if entry.what == "new_phase" and entry.new == "pending" and about["ignores"] and about["is_overdue"]:
        yield _STAYING_DUE


_NAMES = {"init": "step", "rollback": "step", "new_step": "phase"}


def _is_retry(entry: Entry) -> bool:
    return entry.what == "member" and (entry.old, entry.new) == ("failed", "active")


_STEPS = {
    ("pending", "failed"): "Unsendable",
    ("polling", "failed"): "Unsendable",
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
    if found == "Reopened" and entry.about.get("undone"):
        return "Undone"
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
        case "failed", "init_dispatched":
            return "PersonRetriedInit"
        case "init_dispatched" | "detected", "active":
            return "InitDone"
        case (("completed" | "failed"), "active"):
            return "PersonRetriedMembers"
        case _, "cancelled":
            ended = "Emptied" if entry.old == "detected" else "PhasesEnded"
            return "PersonCancelled" if is_person else ended
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
