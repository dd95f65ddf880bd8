"""What a move is: one row of the tables that say what may happen to a step, a member, a phase and a batch.

The tables are the only place that says it. `decide` of each machine chooses a move from its table, the store writes it
with its guards in the statement, and the diagrams, the tests of the guards and the coverage of the simulation are made
from the same rows. A table knows no SQL: the store has a translation of each guard and of each value.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Generic, TypeVar

from matoolkit.records import record

StatusT = TypeVar("StatusT", bound=StrEnum)


class Guard(Enum):
    """What must hold for a row besides its status; the words are for the reference."""

    SAME_JOB = "it is about the latest job"
    UNANSWERED = "that job has no answer yet"
    NEXT_ATTEMPT = "its attempt follows the latest one"
    OVERDUE = "its job should have answered by then"
    NOT_OUT = "no job of it is out"
    SAME_EPOCH = "it is about the present epoch"
    IN_SOURCE = "the source returned it so far"
    GONE_FROM_SOURCE = "it had left the source"
    NOT_CAUGHT_UP = "it still waits to catch up"
    NOT_SEEN_OFF = "it has yet to be seen off"
    EXCLUDED = "it left because a person excluded it"
    UNDONE = "a person undid it"
    NOT_UNDONE = "no person undid it"
    AUTOMATED = "it is not manual"
    MANUAL = "it is manual"
    OTHER_VERSION = "it follows another version of the same runbook"
    NOT_REOPENED = "no person reopened it"


class Value(Enum):
    """What a move writes that depends on the row or on the time of the move."""

    NOW = "the time of the move"
    KEPT_OR_NOW = "what the row has, otherwise the time of the move"
    ONE_MORE = "one more than the row has"


@dataclass(frozen=True, slots=True, eq=False)
class Move(Generic[StatusT]):
    """A row of a table: where a move may start, where it leads, what it writes, and what must hold.

    Without a `to_state` the status stays. `writes` has what is the same for all rows that make the move; what each row
    brings of its own is in records whose fields are columns.
    """

    name: str
    meaning: str
    from_states: frozenset[StatusT]
    to_state: StatusT | None
    writes: Mapping[str, object]
    guards: tuple[Guard, ...] = ()

    @property
    def is_from_anywhere(self) -> bool:
        """Whether the status does not matter."""
        (kind,) = {type(status) for status in self.from_states}
        return len(self.from_states) == len(kind)


@record
class Ignore:
    """No move: what happened came too late, twice or out of turn."""

    reason: str
    # The step does not wait for this answer any more, but its outputs are still useful.
    keeps_outputs: bool = False
