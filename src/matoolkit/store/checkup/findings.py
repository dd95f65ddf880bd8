"""What a check found."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from matoolkit.errors import StoreError


class Outcome(StrEnum):
    """How a check came out."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing that was looked at, and what to do about it if it is not as it should be."""

    kind: str
    name: str
    outcome: Outcome
    said: str
    todo: str = ""


def fine(kind: str, name: str, said: str) -> Checked:
    """Make the result of a check that passed."""
    return Checked(kind, name, Outcome.OK, said)


def wrong(kind: str, name: str, said: str, todo: str) -> Checked:
    """Make the result of a check that failed."""
    return Checked(kind, name, Outcome.FAILED, said, todo)


def untried(kind: str, name: str, why: str) -> Checked:
    """Make the result of a check that could not be made."""
    return Checked(kind, name, Outcome.UNKNOWN, why)


def told(kind: str, name: str, check: Callable[[], Iterator[Checked]]) -> Iterator[Checked]:
    """Let an error of the database be the result of a check."""
    try:
        yield from check()
    except StoreError as error:
        yield wrong(kind, name, error.message, error.hint or "")
