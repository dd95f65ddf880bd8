"""Rows that people upload: checked one by one, used in parts, refused as a whole (rules O13 and A4)."""

import gc
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

import orjson

from matoolkit.domain.keys import folded, is_usable_key
from matoolkit.errors import InvalidMembers

# How much one transaction takes: it blocks other writers only for a fraction of a second, even on a busy machine.
MOST_ROWS_IN_PART = 2_500
MOST_TEXT_IN_PART = 1024 * 1024
_AT_ONCE = 500
_MOST_PROBLEMS = 100
_YOUNG = 1

Row = Mapping[str, Any]
# The key as it was written and the row, by the folded key.
Piece = dict[str, tuple[str, Row]]


class UploadedRow(NamedTuple):
    """A row, its number as people count, and what is wrong with it; without cells it could not be read at all."""

    number: int
    row: Row | None
    problems: tuple[str, ...] = ()


def data_of(row: Row) -> tuple[str, str]:
    """Return a row as a member keeps it: JSON, and its hash."""
    data = orjson.dumps(dict(row), option=orjson.OPT_SORT_KEYS)
    return data.decode(), blake2b(data, digest_size=16).hexdigest()


class Upload:
    """Rows that are good, every one: they are all looked at before anything is done with them.

    They are read once more to be used, so that none has to be kept, in parts that are small enough for a transaction.
    """

    def __init__(self, rows: Iterable[UploadedRow], key_column: str) -> None:
        self._rows = rows
        self._lengths: list[int] = []
        checks = _Checks(key_column)
        length = text = 0
        for given in rows:
            _, _, row = checks.checked(given)
            if len(checks.problems) >= _MOST_PROBLEMS:
                break
            length += 1
            text += sum(len(str(cell)) for cell in row.values())
            if length == MOST_ROWS_IN_PART or text >= MOST_TEXT_IN_PART:
                self._lengths.append(length)
                length = text = 0
        checks.require_good()
        if length:
            self._lengths.append(length)

    def __len__(self) -> int:
        """Count the parts."""
        return len(self._lengths)

    def parts(self) -> Iterator[list[UploadedRow]]:
        """Read the rows once more, part by part."""
        rows = iter(self._rows)
        for length in self._lengths:
            yield list(islice(rows, length))


def keyed_pieces(rows: Iterable[Row | UploadedRow], key_column: str) -> Iterator[Piece]:
    """Hand rows out some at a time, and after the last refuse them all if anything was wrong with one.

    The caller must be able to undo its work. Only the keys of the rows are kept in memory.
    """
    checks = _Checks(key_column)
    piece: Piece = {}
    for place, given in enumerate(rows, start=1):
        fold, key, row = checks.checked(given if isinstance(given, UploadedRow) else UploadedRow(place, given))
        if len(checks.problems) >= _MOST_PROBLEMS:
            break
        if checks.problems:
            continue
        piece[fold] = (key, row)
        if len(piece) == _AT_ONCE:
            yield piece
            piece = {}
            # Statements hold their rows in reference cycles, few but large: the garbage collector would free them late.
            gc.collect(_YOUNG)
    checks.require_good()
    yield piece


class _Checks:
    """Looks at rows in turn, and notes all that is wrong with them."""

    def __init__(self, key_column: str) -> None:
        self._column = key_column
        self._spelling = key_column
        self._first_seen: dict[str, int] = {}
        self.problems: list[str] = []

    def checked(self, given: UploadedRow) -> tuple[str, str, Row]:
        """Return the folded key, the key and the row."""
        row = {} if given.row is None else given.row
        key = self._key(row)
        fold = folded(key)
        found = list(given.problems)
        if given.row is not None:
            if not is_usable_key(key):
                found.append(f"'{self._column}' holds no usable key")
            elif (first := self._first_seen.setdefault(fold, given.number)) != given.number:
                found.append(f"'{key}' is in row {first} too")
        self.problems += [f"row {given.number}: {problem}" for problem in found]
        return fold, key, row

    def _key(self, row: Row) -> str:
        if self._spelling not in row:
            # Rows of a file all have the spelling of its header, so this is looked for once.
            wanted = folded(self._column)
            self._spelling = next((name for name in row if folded(name) == wanted), self._column)
        cell = row.get(self._spelling)
        return "" if cell is None else str(cell).strip()

    def require_good(self) -> None:
        """Refuse all rows if one was wrong, or if there are none."""
        if self.problems or not self._first_seen:
            raise InvalidMembers(self.problems[:_MOST_PROBLEMS] or ["there are no rows"])
