"""Which moves of steps, phases, batches and members were made, and which situations were met."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from matoolkit.domain.holds import HoldKind
from matoolkit.domain.moves import Move
from matoolkit.domain.moves import batch as batches
from matoolkit.domain.moves import member as members
from matoolkit.domain.moves import phase as phases
from matoolkit.domain.moves import step as steps
from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.recording import Entry

# Which machine, in which state, and the name of its move or of the situation.
Case: TypeAlias = tuple[str, str, str]

_TABLES: Mapping[str, Collection[Move[Any]]] = {
    "step": steps.MOVES,
    "init": steps.MOVES,
    "rollback": steps.MOVES,
    "phase": phases.MOVES,
    "batch": batches.MOVES,
    "member": members.MOVES,
}
_MACHINES = {"init": "step", "rollback": "step"}

# What makes a move a case of its own: why it is made, why a batch is held, and under what a member is retried.
_SENT_AGAIN: Case = ("step", "pending", "is sent for another try")
_DEAD: Case = ("step", "dispatched", "fails as a dead letter")
_GIVEN_MORE: Case = ("phase", "dispatched", "is given more steps")
_STAYING_DUE: Case = ("phase", "pending", "stays due under ignore")
_GOING_ON: Case = ("batch", "active", "goes on with members who are retried")
_INIT_RETRIED: Case = ("batch", "init_dispatched", "is asked for its init again by a person")
_EMPTIED: Case = ("batch", "detected", "is cancelled because nobody is left")
_ALL_REMOVED: Case = ("batch", "active", "is cancelled because nobody is left")
_UNDER_ANOTHER_VERSION: Case = ("member", "failed", "is retried under another version")
_WITH_ANOTHER_ROW: Case = ("member", "failed", "is retried with another row")
_CANCELLED_BY_PERSON: frozenset[Case] = frozenset(
    ("batch", str(status), "is cancelled by a person") for status in batches.CANCEL.from_states
)
_HELD: frozenset[Case] = frozenset(("batch", "held", str(kind)) for kind in HoldKind)
_SITUATIONS: frozenset[Case] = (
    frozenset({_SENT_AGAIN, _DEAD, _GIVEN_MORE, _STAYING_DUE, _GOING_ON, _INIT_RETRIED, _EMPTIED, _ALL_REMOVED})
    | {_UNDER_ANOTHER_VERSION, _WITH_ANOTHER_ROW}
    | _CANCELLED_BY_PERSON
    | _HELD
)


def legal_cases() -> set[Case]:
    """Return all moves to another state that the tables have, from each state, and the situations to be met."""
    made = {
        (machine, str(status), move.name)
        for machine, table in _TABLES.items()
        if machine not in _MACHINES
        for move in table
        if move.to_state is not None
        for status in move.from_states
    }
    return made | _SITUATIONS


class Coverage:
    """Recognises moves by what was committed, and changes that no table has."""

    def __init__(self) -> None:
        self.met: set[Case] = set()

    def see(self, entries: Sequence[Entry], *, by_person: bool, by_both: bool = False) -> None:
        """Note the moves of one event, made by a person, by the system, or by both in turn."""
        for entry in entries:
            self.met.update(_situations(entry))
            if not by_both:
                self.met.update(_causes(entry, is_person=by_person))
            if entry.what in _TABLES and (entry.old != entry.new or _is_init_requested(entry)):
                self.met.update(_moves(entry))
        self._see_retries(entries)

    def _see_retries(self, entries: Sequence[Entry]) -> None:
        """Note that a person retried members of a batch that goes on and did not change by it."""
        reopened = {entry.id for entry in entries if entry.what == "batch" and entry.new == "active"}
        retried = {entry.about["batch"] for entry in entries if _is_retry(entry)}
        if retried - reopened:
            self.met.add(_GOING_ON)
        if {entry.id for entry in entries if _is_retry(entry)} & {entry.id for entry in entries if entry.what == "row"}:
            self.met.add(_WITH_ANOTHER_ROW)


def _moves(entry: Entry) -> Iterator[Case]:
    """Find the move that was made; where several lead from the one state to the other, what else changed tells."""
    possible = [move for move in _TABLES[entry.what] if entry.old in move.from_states and entry.new == move.to_state]
    if not possible:
        raise Violation(f"no table has this move: {entry}")
    told = [move for move in possible if move not in _TOLD_BY or _TOLD_BY[move](entry)]
    if len(told) == 1:
        yield _MACHINES.get(entry.what, entry.what), entry.old or "", told[0].name


def _situations(entry: Entry) -> Iterator[Case]:
    about = entry.about
    if entry.what == "held":
        yield ("batch", "held", about["kind"])
    if _is_retry(entry) and about["failed_under"] not in (None, about["follows"]):
        yield _UNDER_ANOTHER_VERSION
    if entry.what == "new_phase" and entry.new == "pending" and about["ignores"] and about["is_overdue"]:
        yield _STAYING_DUE
    if entry.what == "new_step" and entry.old == "dispatched" and about["expanded"]:
        yield _GIVEN_MORE
    if _TABLES.get(entry.what) is steps.MOVES:
        if (entry.old, entry.new) == ("pending", "dispatched") and "-retry-" in (about["job"] or ""):
            yield _SENT_AGAIN
        if (entry.old, entry.new) == ("dispatched", "failed") and about["error"] == "DeadLetter":
            yield _DEAD


def _causes(entry: Entry, *, is_person: bool) -> Iterator[Case]:
    """Find what matters of a batch's move only if it is known who made it."""
    if entry.what != "batch":
        return
    if is_person and entry.old == entry.new == "init_dispatched" and _is_init_requested(entry):
        yield _INIT_RETRIED
    if entry.new == "cancelled" and entry.old in batches.CANCEL.from_states:
        if is_person:
            yield ("batch", entry.old or "", "is cancelled by a person")
        else:
            yield _EMPTIED if entry.old == "detected" else _ALL_REMOVED


def _is_retry(entry: Entry) -> bool:
    return entry.what == "member" and (entry.old, entry.new) == ("failed", "active")


def _is_init_requested(entry: Entry) -> bool:
    return entry.what == "batch" and entry.about["init_count"] != entry.about["old_init_count"]


def _is_taken_back(entry: Entry) -> bool:
    return not entry.about["answered"] and entry.about["tries"] == 0


def _is_lost(entry: Entry) -> bool:
    return bool(entry.about["error"] == "JobLost")


def _is_undone(entry: Entry) -> bool:
    return bool(entry.about.get("undone"))


def _is_new_epoch(entry: Entry) -> bool:
    return bool(entry.about["epoch"] != entry.about["old_epoch"])


_TOLD_BY: Mapping[Move[Any], Callable[[Entry], bool]] = {
    steps.FAIL: lambda entry: not _is_lost(entry),
    steps.FAIL_LOST: _is_lost,
    steps.POLL_LATER: lambda entry: bool(entry.about["answered"]),
    steps.RETRY_LATER: lambda entry: bool(entry.about["answered"]),
    steps.RETRY_LOST: lambda entry: not entry.about["answered"] and entry.about["tries"] > 0,
    steps.TAKE_BACK: lambda entry: _is_taken_back(entry) and "-attempt-" in entry.about["job"],
    steps.TAKE_BACK_RETRY: lambda entry: _is_taken_back(entry) and "-retry-" in entry.about["job"],
    steps.TAKE_BACK_POLL: lambda entry: not entry.about["answered"],
    steps.REOPEN: lambda entry: not _is_undone(entry),
    steps.REPEAT: _is_undone,
    members.REMOVE: lambda entry: not entry.about["mark"],
    members.UNDO: lambda entry: bool(entry.about["mark"]),
    members.RETURN: lambda entry: not entry.about["old_mark"],
    members.RETURN_UNDONE: lambda entry: bool(entry.about["old_mark"]),
    members.REACTIVATE: lambda entry: not _is_new_epoch(entry),
    members.RESTART: lambda entry: _is_new_epoch(entry) and entry.about["outputs"] != "{}",
    members.RESTART_UNDONE: lambda entry: (
        _is_new_epoch(entry) and entry.about["outputs"] == "{}" != entry.about["old_outputs"]
    ),
}
