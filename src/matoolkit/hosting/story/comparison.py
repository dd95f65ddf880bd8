"""Two looks, one after the other."""

from dataclasses import dataclass
from datetime import datetime

from matoolkit.hosting.story.lines import Line, Mark
from matoolkit.hosting.story.look import Look


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was, what is, and the time for what has none of its own."""

    before: Look
    after: Look
    now: datetime

    def line(self, at: datetime | None, mark: Mark, text: str, batch_id: int) -> Line:
        """Return a line about a batch."""
        return Line(at or self.now, mark, text, batch_id, self.after.batches[batch_id].batch_start_time)
