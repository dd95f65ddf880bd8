"""Phases that freezes and windows keep from beginning until they are late, or for ever (rule K6)."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from matoolkit.domain.doors import Work
from matoolkit.domain.gates import Gate
from matoolkit.domain.windows import Hours, opening
from matoolkit.records import record


@record
class Ahead:
    """A phase that is to begin: when it is due, until when it may begin by itself, and its window."""

    batch_id: int
    runbook_name: str
    name: str
    due_at: datetime | None
    late_after: datetime | None
    hours: Hours | None


@record
class Delay:
    """A phase that would begin only at `begins_at`, which is too late, or never; and what keeps it last."""

    phase: Ahead
    begins_at: datetime | None
    kept_by: str

    def in_words(self) -> str:
        """Say what becomes of the phase."""
        due = f"{self.phase.due_at:%Y-%m-%d %H:%M} UTC"
        what = f"phase '{self.phase.name}' of batch {self.phase.batch_id}, due at {due},"
        if self.begins_at is None or self.phase.late_after is None:
            return f"{what} would never begin: {self.kept_by}"
        begins, limit = (f"{at:%Y-%m-%d %H:%M} UTC" for at in (self.begins_at, self.phase.late_after))
        return f"{what} could begin at {begins}, and only until {limit}: {self.kept_by}"


def delays(phases: Iterable[Ahead], freezes: Collection[Gate], at: datetime) -> list[Delay]:
    """Return the phases that a freeze, a window or their own due time keeps until they are late, or for ever."""
    found = []
    for phase in phases:
        if phase.due_at is None:
            continue
        covering = [gate for gate in freezes if gate.covers(Work(phase.runbook_name, phase.batch_id))]
        begins, kept_by = _beginning(max(phase.due_at, at), phase.hours, covering)
        is_late = begins is not None and phase.late_after is not None and begins > phase.late_after
        if begins is None or is_late:
            found.append(Delay(phase, begins, kept_by))
    return found


def _beginning(earliest: datetime, hours: Hours | None, freezes: Sequence[Gate]) -> tuple[datetime | None, str]:
    """Return the first time at which the window is open and no freeze is in force; each freeze is passed once."""
    begins, kept_by = earliest, "that has passed"
    for _ in range(2 * len(freezes) + 2):
        frozen = next((gate for gate in freezes if _covers(gate, begins)), None)
        if frozen is not None:
            kept_by = f"freeze {frozen.id}: {frozen.reason}"
            if frozen.shut_until is None:
                return None, kept_by
            begins = frozen.shut_until
            continue
        found = None if hours is None else opening(hours, begins)
        if hours is None or (found is not None and found.since <= begins):
            return begins, kept_by
        kept_by = f"its window is {hours}"
        if found is None:
            return None, kept_by
        begins = found.since
    return begins, kept_by


def _covers(freeze: Gate, at: datetime) -> bool:
    return freeze.shut_from <= at and (freeze.shut_until is None or freeze.shut_until > at)
