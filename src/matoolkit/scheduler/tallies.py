"""What a tick did for a runbook, counted while it happens."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime

from matoolkit.domain.cells import json_text
from matoolkit.domain.remarks import Remark
from matoolkit.domain.rows import Reading
from matoolkit.runbook.templates import Json
from matoolkit.store.automation import TickRow


@dataclass(slots=True)
class Tally:
    """Counts of one tick of one runbook; `error` is why its source was not compared, if it was not."""

    runbook_name: str
    runbook_version: int
    started_at: datetime
    queried: bool = False
    rows_read: int = 0
    rows_set_aside: int = 0
    rows_ignored: int = 0
    batches_created: int = 0
    batches_rescheduled: int = 0
    batches_held: int = 0
    batches_released: int = 0
    members_added: int = 0
    members_removed: int = 0
    members_moved: int = 0
    members_returned: int = 0
    members_refreshed: int = 0
    phases_dispatched: int = 0
    error: str | None = None
    set_aside: dict[str, Json] = field(default_factory=dict)
    remarks: Sequence[Remark] = ()
    seconds: float = 0.0

    def note_reading(self, reading: Reading) -> None:
        """Count what was read from the source."""
        self.queried = True
        self.rows_read = reading.read
        self.rows_set_aside = sum(reading.counts.values())
        counts: dict[str, Json] = {str(reason): count for reason, count in reading.counts.items()}
        self.set_aside = {"counts": counts, "samples": [asdict(sample) for sample in reading.samples]}

    def row(self, finished_at: datetime) -> TickRow:
        """Return what is kept of it."""
        shared = {entry.name for entry in fields(TickRow)} & {entry.name for entry in fields(Tally)}
        return TickRow(
            **{name: getattr(self, name) for name in shared},
            finished_at=finished_at,
            set_aside_json=json_text(self.set_aside).decode(),
            remarks_json=json_text([asdict(remark) for remark in self.remarks]).decode(),
        )
