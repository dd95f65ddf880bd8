"""Gates: whatever keeps work from going on, decided and explained in one place (rules G1 to G3).

There are two doors. Work that begins goes through the start door, and every job through the send door. A gate shuts one
of them for what it covers; one that shuts the send door shuts the start door too.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from matoolkit.domain.holds import HoldKind
from matoolkit.domain.keys import folded
from matoolkit.records import record


class Door(StrEnum):
    """Where work is kept back."""

    START = "start"
    SEND = "send"


class GateKind(StrEnum):
    """What shut a gate; gates are told of in this order."""

    REMOVALS = "removals"
    CALLED_OFF = "called_off"
    RESCHEDULE = "reschedule"
    INIT = "init"
    LATE = "late"
    REPEAT = "repeat"
    PAUSE = "pause"


HOLDS = frozenset(GateKind(kind) for kind in HoldKind)
_ORDER = {kind: place for place, kind in enumerate(GateKind)}


@record
class Gate:
    """A stored gate in force. It covers what agrees with all that its scope names; one that names nothing, everything.

    A person is a runbook and a key, so that the gate follows moves and epochs (rule G2).
    """

    id: int
    kind: GateKind
    reach: Door
    worker_id: str | None
    runbook_name: str | None
    member_key_fold: str | None
    batch_id: int | None
    shut_from: datetime
    shut_until: datetime | None
    shut_by: str
    reason: str
    opened_at: datetime | None = None

    def covers(self, work: "Work") -> bool:
        """Tell whether the gate is about this work."""
        return (
            self.worker_id in (None, work.worker_id)
            and self.runbook_name in (None, work.runbook_name)
            and self.batch_id in (None, work.batch_id)
            and (self.member_key_fold is None or self.member_key_fold == work.member_key_fold)
        )


@record
class Work:
    """What wants to go through a door; only a job has a worker, and only a member's work a member."""

    runbook_name: str
    batch_id: int
    worker_id: str | None = None
    member_key: str | None = None
    is_init: bool = False

    @property
    def member_key_fold(self) -> str | None:
        """Its member's key, folded for comparison."""
        return None if self.member_key is None else folded(self.member_key)


# The narrowest that a gate names; few gates are about the same.
_Subject: TypeAlias = tuple[str, object]


@dataclass(slots=True)
class Gates:
    """The gates that are in force at one moment (rule G3)."""

    in_force: Sequence[Gate] = ()
    _by_subject: dict[_Subject, list[Gate]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for gate in self.in_force:
            self._by_subject.setdefault(_subject(gate), []).append(gate)

    def at(self, door: Door, work: Work) -> list[Gate]:
        """Return the gates that keep work before a door, in their order; it is open if there are none (rule G1)."""
        if not self._by_subject:
            return []
        shut = (gate for gate in self._about(work) if _shuts(gate, door, work) and gate.covers(work))
        return sorted(shut, key=lambda gate: (_ORDER[gate.kind], gate.id))

    def hold_of(self, batch_id: int) -> Gate | None:
        """Return the hold that keeps the members and the version of a batch as they are, if there is one (rule T6)."""
        of_batch = self._by_subject.get(("batch", batch_id), ())
        return next((gate for gate in of_batch if gate.kind in HOLDS), None)

    def _about(self, work: Work) -> Iterator[Gate]:
        subjects = {
            ("batch", work.batch_id),
            ("member", work.member_key_fold),
            ("runbook", work.runbook_name),
            ("worker", work.worker_id),
            ("all", None),
        }
        for subject in subjects:
            yield from self._by_subject.get(subject, ())


def _subject(gate: Gate) -> _Subject:
    if gate.batch_id is not None:
        return "batch", gate.batch_id
    if gate.member_key_fold is not None:
        return "member", gate.member_key_fold
    if gate.runbook_name is not None:
        return "runbook", gate.runbook_name
    return ("worker", gate.worker_id) if gate.worker_id is not None else ("all", None)


def sentence(gate: Gate) -> str:
    """Say why work waits before a gate."""
    if gate.kind in HOLDS:
        return f"held until a person approves: {gate.reason}"
    until = f" until {gate.shut_until:%Y-%m-%d %H:%M} UTC" if gate.shut_until is not None else ""
    return f"paused by {gate.shut_by} at {gate.shut_from:%Y-%m-%d %H:%M} UTC{until}: {gate.reason}"


def time_kept(gates: Iterable[Gate], work: Work, since: datetime, until: datetime) -> timedelta:
    """Return for how long of a time gates kept the jobs of work from leaving; gates may overlap (rule G7)."""
    kept, reached = timedelta(), since
    for gate in sorted(gates, key=lambda gate: gate.shut_from):
        if gate.reach is not Door.SEND or not gate.covers(work):
            continue
        ends = [until, *(end for end in (gate.shut_until, gate.opened_at) if end is not None)]
        begins = max(gate.shut_from, reached)
        if begins < min(ends):
            kept, reached = kept + (min(ends) - begins), min(ends)
    return kept


def _shuts(gate: Gate, door: Door, work: Work) -> bool:
    # A hold keeps phases from beginning; an init that was asked for runs (rule T6).
    if work.is_init and gate.kind in HOLDS:
        return False
    return door is Door.START or gate.reach is Door.SEND
