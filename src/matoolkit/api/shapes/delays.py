"""Phases that could begin only too late, as they are answered (rule K6)."""

from collections.abc import Sequence
from datetime import datetime

from pydantic import Field

from matoolkit.api.shapes.naming import Shape
from matoolkit.domain.delays import Delay

_MOST_DELAYS = 100


class DelayShape(Shape):
    """A phase that a freeze or a window keeps until it is late, or for ever."""

    batch_id: int
    phase_name: str
    due_at: datetime
    begins_at: datetime | None = Field(description="When it could begin; null for never.")
    late_after: datetime | None
    kept_by: str
    sentence: str


def delay_shapes(delays: Sequence[Delay]) -> list[DelayShape]:
    """Describe the first phases that could begin only too late."""
    return [_delay(delay) for delay in delays[:_MOST_DELAYS]]


def _delay(delay: Delay) -> DelayShape:
    facts = {
        "batch_id": delay.phase.batch_id,
        "phase_name": delay.phase.name,
        "due_at": delay.phase.due_at,
        "begins_at": delay.begins_at,
        "late_after": delay.phase.late_after,
        "kept_by": delay.kept_by,
        "sentence": delay.in_words(),
    }
    return DelayShape.model_validate(facts)
