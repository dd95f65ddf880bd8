"""Two texts compared line by line, with the parts that are equal folded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from matoolkit.runbook.parse import Report
from matoolkit.web.documents import Fold, shown_texts

_AROUND = 3
# Comparing takes longer than in proportion, and a page stays small.
_MOST_COMPARED = 5000
_MOST_ROWS = 400
_MOST_LETTERS = 20_000


@dataclass(frozen=True, slots=True)
class Row:
    """A line that is in both texts, or in one of them."""

    sign: Literal[" ", "-", "+"]
    old: int | None
    new: int | None
    text: str


@dataclass(frozen=True, slots=True)
class TextDifference:
    """What a page shows of a comparison; `unshown` counts the rows that are too many."""

    rows: Sequence[Row | Fold]
    added: int
    removed: int
    unshown: int = 0
    is_too_long: bool = False


def compared(before: Report, after: Report) -> TextDifference:
    """Compare two documents."""
    old, new = shown_texts(before), shown_texts(after)
    if max(len(old), len(new)) > _MOST_COMPARED:
        return TextDifference((), 0, 0, is_too_long=True)
    rows = list(_rows(old, new))
    added, removed = (sum(isinstance(row, Row) and row.sign == sign for row in rows) for sign in "+-")
    shown = _as_many_as_fit(rows)
    return TextDifference(rows[:shown], added, removed, len(rows) - shown)


def _rows(old: Sequence[str], new: Sequence[str]) -> Iterator[Row | Fold]:
    # Without junk: a line that comes often, such as an empty one, still matches its like.
    blocks = SequenceMatcher(None, old, new, autojunk=len(old) > _MOST_ROWS).get_opcodes()
    for sign, begin, end, at, until in blocks:
        if sign == "equal":
            yield from _equal(new, begin, at, end - begin, is_first=begin == 0, is_last=end == len(old))
        else:
            yield from (Row("-", number + 1, None, old[number]) for number in range(begin, end))
            yield from (Row("+", None, number + 1, new[number]) for number in range(at, until))


def _equal(
    new: Sequence[str], old_at: int, new_at: int, count: int, *, is_first: bool, is_last: bool
) -> Iterator[Row | Fold]:
    head, tail = 0 if is_first else _AROUND, 0 if is_last else _AROUND
    hidden = range(head, count - tail) if count > head + tail + 1 else range(0)
    for place in range(count):
        if place not in hidden:
            yield Row(" ", old_at + place + 1, new_at + place + 1, new[new_at + place])
        elif place == hidden.start:
            yield Fold(new_at + place + 1, len(hidden))


def _as_many_as_fit(rows: Sequence[Row | Fold]) -> int:
    letters = 0
    for number, row in enumerate(rows[:_MOST_ROWS]):
        letters += len(row.text) if isinstance(row, Row) else 0
        if letters > _MOST_LETTERS:
            return max(number, 1)
    return min(len(rows), _MOST_ROWS)
