"""Checks of single values. A refusal carries the code of its finding and a hint.

Messages repeat what the runbook says, except where it may be a secret.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias, get_args
from zoneinfo import ZoneInfo, available_timezones

from pydantic_core import PydanticCustomError

from matoolkit.duration import parse_duration
from matoolkit.errors import did_you_mean
from matoolkit.runbook.offsets import Offset, parse_offset
from matoolkit.settings import is_own_variable

MAX_NAME = 100
# Azure Service Bus allows 50 characters for a subscription, which is called `worker-{id}`.
MAX_WORKER_ID = 43
MAX_TEXT = 1_000
MAX_QUERY = 32_768

NAME_PATTERN = r"^[A-Za-z0-9_-]+$"
DURATION_PATTERN = r"^[0-9]{1,9}[smhd]$"
PERCENTAGE_PATTERN = r"^(100|[0-9]{1,2})%$"
# Before the name of a role, where sign-in names may stand too.
ROLE = "role:"
ANY_APPROVER = "role:Approver"
# Zones that depend on the machine.
_LOCAL_ZONES = frozenset({"localtime", "posixrules", "Factory"})
FILE_NAME_PATTERN = r"\.([cC][sS][vV]|[xX][lL][sS][xX])$"
ENVIRONMENT_VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"
TIME_OF_DAY_PATTERN = r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"
DAY_MINUTES = 24 * 60
Weekday: TypeAlias = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many of some members may leave or fail: a count or a percentage, never both."""

    count: int | None = None
    percent: int | None = None

    def of(self, members: int) -> int:
        """Return how many of so many it is, rounded down."""
        return members * self.percent // 100 if self.percent is not None else self.count or 0


def refusal(code: str, message: str, hint: str | None = None) -> PydanticCustomError:
    """Build the exception that refuses a value."""
    return PydanticCustomError(code, "{message}", {"message": message, "hint": hint})


def from_text(check: Callable[[str], object], hint: str | None = None) -> Callable[[Any], Any]:
    """Let a check see text only, and refuse anything else as the wrong type."""

    def checked(value: Any) -> Any:
        if isinstance(not_null(value), str):
            return check(value)
        raise refusal("RB103", f"expected text, found {kind_of(value)}", hint or _hint_for_text(value))

    return checked


def not_null(value: Any) -> Any:
    """Refuse a key that is written without a value."""
    if value is None:
        raise refusal("RB108", "has no value", "give it one, or remove the key")
    return value


def without_own_keys(data: Any) -> Any:
    """Leave out the keys that begin with `x-`, which belong to the author (rule R1)."""
    return {key: data[key] for key in data if not key.startswith("x-")} if isinstance(data, Mapping) else data


def name(text: str) -> str:
    """Check a name of a runbook, phase, step or rollback (rule R2)."""
    return _name(text, MAX_NAME)


def worker_id(text: str) -> str:
    """Check the id of a worker."""
    return _name(text, MAX_WORKER_ID)


def non_empty(text: str) -> str:
    """Refuse empty text and text that is too long."""
    if not text.strip():
        raise refusal("RB108", "is empty")
    return _not_longer_than(MAX_TEXT, text)


def query(text: str) -> str:
    """Refuse an empty or too long query; `rules` checks its content."""
    if not text.strip():
        raise refusal("RB108", "is empty", "write one SELECT or WITH statement")
    return _not_longer_than(MAX_QUERY, text)


def duration(text: str) -> timedelta:
    """Read a duration that is longer than nothing."""
    try:
        read = parse_duration(text)
    except ValueError as problem:
        said = str(problem).partition(":")[0]
        raise refusal("RB107", f"'{text}' {said}") from None
    if not read:
        raise refusal("RB107", f"'{text}' is not longer than zero", "write a duration longer than zero")
    return read


def offset(text: str) -> Offset:
    """Read an offset from T (rule R3)."""
    try:
        return parse_offset(text)
    except ValueError as problem:
        hint = None if text.startswith("T") else "offsets begin with a capital T"
        raise refusal("RB106", f"'{text}' {problem}", hint) from None


def time_of_day(text: str) -> int:
    """Read a time of the day, in minutes from midnight."""
    if re.fullmatch(TIME_OF_DAY_PATTERN, text, re.ASCII) is None:
        raise refusal("RB117", f"'{text}' is not a time of the day", "write it as in 08:00, 20:30 or 24:00")
    return int(text[:2]) * 60 + int(text[3:])


def time_zone(text: str) -> str:
    """Check that a time zone is one of the IANA database."""
    if not is_time_zone(text):
        raise refusal("RB114", f"'{text}' is not a time zone", zone_hint(text))
    return text


def is_time_zone(text: str) -> bool:
    """Tell whether a text is the name of a zone in the IANA database."""
    try:
        ZoneInfo(text)
    except (ValueError, OSError, KeyError):
        return False
    return text not in _LOCAL_ZONES


def zone_hint(text: str) -> str:
    """Say what to write in place of a zone that there is not."""
    return did_you_mean(text, _similar_zones(text)) or "write an IANA name such as Europe/Berlin or UTC"


def _similar_zones(text: str) -> list[str]:
    """List zones for a hint; abbreviations such as CEST are left out, because similar ones mean other times."""
    return sorted(zone for zone in available_timezones() if "/" in zone and zone[:1].casefold() == text[:1].casefold())


def environment_variable(text: str) -> str:
    """Check the name of an environment variable; its text may be a secret, so it is not repeated (rule R4)."""
    if "://" in text or ";" in text or "=" in text or "@" in text:
        raise refusal(
            "RB112",
            "looks like an address or connection string",
            "write the name of an environment variable, and put the value there: runbooks are shared and stored",
        )
    if re.fullmatch(ENVIRONMENT_VARIABLE_PATTERN, text, re.ASCII) is None:
        raise refusal(
            "RB111",
            "is not the name of an environment variable",
            "use letters, digits and _, such as DATAVERSE_CONNECTION_STRING",
        )
    if is_own_variable(text):
        raise refusal("RB113", f"'{text}' configures the system itself", "give the source a variable of its own")
    return text


def file_name(text: str) -> str:
    """Check the name of a list: below the folder of lists, and of a kind that can be read (rule U4)."""
    parts = text.split("/")
    if "" in parts or "." in parts or ".." in parts or any(sign in text for sign in "\\:\0"):
        raise refusal(
            "RB116",
            "does not name a file below the folder of lists",
            "write people.xlsx or hr/people.xlsx: no '..', no drive, no '/' at the beginning",
        )
    if re.search(FILE_NAME_PATTERN, text) is None:
        raise refusal("RB116", "names no .csv and no .xlsx file", "save the list as .xlsx or as CSV")
    return _not_longer_than(MAX_TEXT, text)


def approver(text: str) -> str:
    """Check who may sign off: a role, or the name with which somebody signs in."""
    said = non_empty(text).strip()
    if said.casefold().startswith(ROLE):
        role = said[len(ROLE) :].strip()
        if not role:
            raise refusal("RB108", "names no role", "write role:Approver")
        return f"{ROLE}{role}"
    return said


def allowance(value: Any) -> Allowance:
    """Read a count such as `10` or a percentage such as `20%`."""
    not_null(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1_000_000:
        return Allowance(count=value)
    if isinstance(value, str) and re.fullmatch(PERCENTAGE_PATTERN, value, re.ASCII):
        return Allowance(percent=int(value[:-1]))
    shown = f"'{value}'" if isinstance(value, str | int | float) and not isinstance(value, bool) else kind_of(value)
    raise refusal("RB115", f"expected a count or a percentage, found {shown}", "write 10 or 20%")


def percent(value: Any) -> Any:
    """Refuse a number of percent that is written with its sign; the model checks the rest."""
    if isinstance(not_null(value), str) and re.fullmatch(PERCENTAGE_PATTERN, value, re.ASCII):
        raise refusal("RB103", f"expected a whole number, found '{value}'", f"write {value[:-1]}, without %")
    return value


def kind_of(value: Any) -> str:
    """Say what kind of value it is, in the words of a YAML author."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
        case _:
            return "a mapping"


def _hint_for_text(value: Any) -> str | None:
    return "put it in quotes" if isinstance(value, (bool, int, float)) else None


def _name(text: str, longest: int) -> str:
    if not text:
        raise refusal("RB108", "is empty", "use letters, digits, - and _")
    if re.fullmatch(NAME_PATTERN, text, re.ASCII) is None:
        raise refusal("RB105", f"'{text}' is not a name", "use letters, digits, - and _ only")
    return _not_longer_than(longest, text)


def _not_longer_than(longest: int, text: str) -> str:
    if len(text) > longest:
        raise refusal("RB110", f"is {len(text):,} characters long; at most {longest:,} are allowed")
    return text
