"""What a source says about the cutover time T, read as an instant or refused with a reason (rule T3).

A time is never guessed: a wrong guess would cut somebody over at the wrong hour.
"""

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

_TEXT = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<time>\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)\s?(?P<zone>Z|z|[+-]\d{2}:?\d{2})?)?",
    re.ASCII,
)


class UnreadableBatchTime(ValueError):
    """A batch time that is not exactly one instant; its text says why."""


def read_batch_time(value: object, zone: ZoneInfo | None) -> datetime:
    """Read a batch time in UTC; one that is written without zone is in `zone`, or in UTC if there is none."""
    match value:
        case datetime():
            return _in_utc(value, zone)
        case date():
            return _at_midnight(value, zone)
        case str():
            return _from_text(value.strip(), zone)
        case None:
            raise UnreadableBatchTime("it is empty")
        case _:
            raise UnreadableBatchTime(f"it is of type {type(value).__name__}")


def end_of_day(value: str | date, zone: ZoneInfo | None) -> datetime | None:
    """Return when the day ends, in UTC, that a readable batch time names without a time of day."""
    if isinstance(value, str):
        text = _TEXT.fullmatch(value.strip())
        if text is None or text["time"] is not None:
            return None
        value = date.fromisoformat(text["date"])
    if isinstance(value, datetime):
        return None
    try:
        return datetime.combine(value + timedelta(days=1), time(), zone).astimezone(UTC)
    except OverflowError:
        # A source that writes 9999-12-31 for "not yet" names the last day that there is.
        return datetime.max.replace(tzinfo=UTC)


def _from_text(text: str, zone: ZoneInfo | None) -> datetime:
    match = _TEXT.fullmatch(text)
    if match is None:
        raise UnreadableBatchTime(_why_unreadable(text))
    try:
        if match["time"] is None:
            return _at_midnight(date.fromisoformat(match["date"]), zone)
        # More digits than a microsecond has say nothing that matters here.
        written = match["time"][:15]
        return _in_utc(datetime.fromisoformat(f"{match['date']}T{written}{(match['zone'] or '').upper()}"), zone)
    except (ValueError, OverflowError) as error:
        if isinstance(error, UnreadableBatchTime):
            raise
        raise UnreadableBatchTime("there is no such date or time") from None


def _why_unreadable(text: str) -> str:
    if not text:
        return "it is empty"
    if re.fullmatch(r"\d{1,4}[/.]\d{1,2}[/.]\d{1,4}.*", text, re.ASCII):
        return "the order of day and month is ambiguous: write YYYY-MM-DD HH:MM"
    return "it is not a time: write YYYY-MM-DD HH:MM or ISO 8601"


def _at_midnight(day: date, zone: ZoneInfo | None) -> datetime:
    if zone is None:
        raise UnreadableBatchTime("it is a date without a time, which needs batch_time_zone")
    return _in_utc(datetime.combine(day, time()), zone)


def _in_utc(instant: datetime, zone: ZoneInfo | None) -> datetime:
    try:
        if instant.tzinfo is not None:
            return instant.astimezone(UTC)
        if zone is None:
            return instant.replace(tzinfo=UTC)
        return _local(instant, zone)
    except OverflowError:
        raise UnreadableBatchTime("there is no such date or time") from None


def _local(written: datetime, zone: ZoneInfo) -> datetime:
    """Place a wall-clock time in its zone; when clocks are changed, some exist twice and some never."""
    first, second = (written.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if first == second:
        return first
    if first > second:
        raise UnreadableBatchTime(f"it does not exist in {zone.key}: clocks are put forward past it")
    raise UnreadableBatchTime(f"it exists twice in {zone.key}: clocks are put back over it")
