"""What every error has, and the errors that belong to no room."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from difflib import get_close_matches
from itertools import islice

_MOST_LETTERS_OFF = 4
_MOST_COMPARED = 200


class MatoolkitError(Exception):
    """Something in the system itself is wrong.

    `transient` says that the same work may succeed later by itself. `is_outage` says that something is away, perhaps
    until a person does something about it. The part that owns the connection logs it, so its users do not. In both
    cases the work is not to blame: it is kept, and no message counts a failure (rule M6).
    """

    code: str = "MT500"
    http_status: int = 500
    exit_code: int = 6
    transient: bool = False
    is_outage: bool = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def spares_work(self) -> bool:
        """Whether the work that met it is not to blame."""
        return self.transient or self.is_outage


class NaiveTime(MatoolkitError):
    """A time without zone reached code that needs an instant."""

    code = "MT501"

    def __init__(self, instant: datetime) -> None:
        super().__init__(f"{instant.isoformat()} has no time zone, so it is not an instant")
        self.instant = instant


class TimeOutOfRange(MatoolkitError):
    """A time in UTC lies outside the years 1 to 9999."""

    code = "MT502"

    def __init__(self, instant: datetime) -> None:
        super().__init__(f"{instant.isoformat()} cannot be written in UTC: years go from 1 to 9999")
        self.instant = instant


class Refused(MatoolkitError):
    """What was asked for cannot be done as asked."""

    code = "MT400"
    http_status = 400
    exit_code = 2


class InvalidSettings(Refused):
    """The environment holds a setting that cannot be used."""

    code = "ST400"

    def __init__(self, problems: Sequence[str], *, hint: str | None = None) -> None:
        super().__init__("; ".join(problems), hint=hint)
        self.problems = tuple(problems)


class UnreadableFile(Refused):
    """A file cannot be read."""

    code = "IN404"
    http_status = 404
    exit_code = 3

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot read {path}: {reason}", hint="check the path; `-` reads standard input")
        self.path = path


def error_kinds(root: type[MatoolkitError] = MatoolkitError) -> Iterator[type[MatoolkitError]]:
    """List an error and everything derived from it."""
    yield root
    for child in root.__subclasses__():
        yield from error_kinds(child)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that a mistyped one was most likely meant to be."""
    # Comparing is slow. The right word has about the same length, and long lists of names are not typed by hand.
    similar = (name for name in known if abs(len(name) - len(word)) <= _MOST_LETTERS_OFF)
    by_folded = {name.casefold(): name for name in islice(similar, _MOST_COMPARED)}
    found = get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """Phrase the nearest known word as a hint."""
    found = nearest(word, known)
    return f"did you mean '{found}'?" if found else None
