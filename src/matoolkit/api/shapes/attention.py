"""What needs a person, as it is answered."""

from datetime import datetime

from pydantic import Field

from matoolkit.admin.attention import Attention
from matoolkit.admin.decisions import Inbox
from matoolkit.admin.matters import MatterKind
from matoolkit.api.shapes.naming import Shape
from matoolkit.words import Role


class MatterShape(Shape):
    """Something that needs a person; `things` is more than one where it stands for the rest of its kind."""

    kind: MatterKind
    role: Role
    sentence: str
    detail: str
    since: datetime | None
    batch_id: int | None
    batch_start_time: datetime | None
    runbook_name: str | None
    page: str = Field(description="Where the pages go on with it: an address without scheme and host.")
    command: str = Field(description="The command that shows more of it.")
    things: int
    deadline: datetime | None = Field(description="Until when somebody should decide, if that is known.")


class NextPhaseShape(Shape):
    """The phase that is due next by itself."""

    batch_id: int
    runbook_name: str
    phase_name: str
    due_at: datetime


class AttentionShape(Shape):
    """What needs a person at a moment, the most urgent first, and what comes next by itself."""

    at: datetime
    things: int = Field(description="How many things need a person, those that are only counted included.")
    items: list[MatterShape]
    next_phase: NextPhaseShape | None
    last_tick_at: datetime | None


def attention_shape(seen: Attention) -> AttentionShape:
    """Answer with what was seen."""
    items = [MatterShape.model_validate(matter) for matter in seen.matters]
    return AttentionShape(
        at=seen.at,
        things=seen.things,
        items=items,
        next_phase=seen.next_phase and NextPhaseShape.model_validate(seen.next_phase),
        last_tick_at=seen.last_tick_at,
    )


class InboxShape(Shape):
    """All that waits for a person's decision, the oldest deadline first."""

    at: datetime
    items: list[MatterShape]


def inbox_shape(found: Inbox) -> InboxShape:
    """Answer with what waits."""
    return InboxShape(at=found.at, items=[MatterShape.model_validate(matter) for matter in found.matters])
