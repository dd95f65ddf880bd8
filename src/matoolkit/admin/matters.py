"""What may need a person: its kinds, and how one of them is told (rules U6 and X6)."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from matoolkit.words import LOOKS, Role


class MatterKind(StrEnum):
    """What kind of thing needs a person, the most urgent first."""

    HELD = "held"
    LATE = "late"
    BUDGET = "budget"
    APPROVAL = "approval"
    OVERDUE = "overdue"
    SCHEDULER = "scheduler"
    UNDO_FAILED = "undo_failed"
    FAILED = "failed"
    SOURCE = "source"
    SILENT = "silent"
    DEAD_LETTER = "dead_letter"
    PAUSED = "paused"
    FROZEN = "frozen"


@dataclass(frozen=True, slots=True)
class Matter:
    """Something that needs a person: what, in one sentence, more of it, since when, and where to go on.

    `things` is how many it stands for: one, or the rest of its kind. `page` is an address of the pages. Up to its
    `deadline` somebody should have decided, if that is known.
    """

    kind: MatterKind
    sentence: str
    detail: str
    since: datetime | None
    page: str
    command: str
    batch_id: int | None = None
    batch_start_time: datetime | None = None
    runbook_name: str | None = None
    things: int = 1
    deadline: datetime | None = None

    @property
    def role(self) -> Role:
        """What it means to a person who looks at many; a colour stands for it."""
        return LOOKS[self.kind].role
