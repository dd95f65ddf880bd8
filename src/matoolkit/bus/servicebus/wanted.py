"""What a namespace must have, as the SDK's administration client names it; numbers are from `bus/topology.py`."""

from datetime import timedelta
from typing import Any

from matoolkit.bus import topology
from matoolkit.domain.delivery import MAX_DELIVERIES
from matoolkit.records import record

# Service Bus writes "never" as some ten thousand years.
_NEVER = timedelta(days=3650)


@record
class Wanted:
    """A property of a topic or a subscription: its name for people and for the SDK, and its value.

    With `or_more` a larger value will do. What is `fixed` can only be set when the entity is created.
    """

    name: str
    attribute: str
    value: Any
    or_more: bool = False
    fixed: bool = False

    def is_met_by(self, found: Any) -> bool:
        """Tell whether a value will do."""
        if self.or_more:
            return found is None or found >= self.value
        return bool(found == self.value)

    @property
    def told(self) -> str:
        """The value, for people."""
        return f"{told(self.value)} or more" if self.or_more else told(self.value)


TOPIC = (
    Wanted("status", "status", "Active"),
    Wanted("duplicate detection", "requires_duplicate_detection", value=True, fixed=True),
    Wanted("duplicate window", "duplicate_detection_history_time_window", topology.DUPLICATE_WINDOW),
    Wanted("time to live", "default_message_time_to_live", topology.TIME_TO_LIVE),
    Wanted("megabytes", "max_size_in_megabytes", topology.MEGABYTES, or_more=True),
    Wanted("partitioning", "enable_partitioning", value=False, fixed=True),
    Wanted("deleted when idle for", "auto_delete_on_idle", _NEVER, or_more=True),
)
# The shorter life of topic and subscription holds, so the topic's decides.
SUBSCRIPTION = (
    Wanted("status", "status", "Active"),
    Wanted("lock duration", "lock_duration", topology.LOCK_DURATION, or_more=True),
    Wanted("deliveries", "max_delivery_count", MAX_DELIVERIES),
    Wanted("time to live", "default_message_time_to_live", topology.TIME_TO_LIVE, or_more=True),
    Wanted("dead letter on expiry", "dead_lettering_on_message_expiration", value=True),
    Wanted("dead letter on a failing rule", "dead_lettering_on_filter_evaluation_exceptions", value=True),
    Wanted("sessions", "requires_session", value=False, fixed=True),
    Wanted("forwarded to", "forward_to", None),
    Wanted("deleted when idle for", "auto_delete_on_idle", _NEVER, or_more=True),
)


def told(value: Any) -> str:
    """Return a value for people: durations as ISO 8601 writes them."""
    match value:
        case timedelta():
            return _iso(value)
        case bool():
            return "on" if value else "off"
        case None:
            return "nothing"
    return str(value)


def _iso(span: timedelta) -> str:
    minutes, seconds = divmod(span.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    date = f"{span.days}D" if span.days else ""
    time = "".join(f"{count}{unit}" for count, unit in ((hours, "H"), (minutes, "M"), (seconds, "S")) if count)
    return f"P{date}{'T' + time if time else ''}" if date or time else "PT0S"
