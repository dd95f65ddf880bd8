"""How long after it was due a phase may still begin by itself (rule K5)."""

from datetime import datetime, timedelta


def limit_of(
    due_at: datetime | None, max_delay: timedelta | None, counted_from: datetime | None = None
) -> datetime | None:
    """Return until when a phase may begin: so long after it was due, or from a later time from which that counts."""
    if due_at is None or max_delay is None:
        return None
    try:
        return max(due_at, counted_from or due_at) + max_delay
    except OverflowError:
        # A source that writes 9999-12-31 for "not yet" has no later day.
        return None


def is_too_late(late_after: datetime | None, at: datetime) -> bool:
    """Tell whether a phase that has not begun may not begin by itself any more."""
    return late_after is not None and late_after < at
