"""What spreadsheets do to the cells that people type (rules A4 and U4).

A key such as `00123` becomes the number 123, a long one becomes 1.23E+11, and a formula that fails leaves its error in
the cell. None of them can be undone by guessing.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Any

# How Excel offers what is needed here; other encodings and separators depend on the computer that wrote the file.
SAVE_AS_CSV = "in Excel: Save As, 'CSV UTF-8 (Comma delimited)'"

_SCIENTIFIC = re.compile(r"([+-]?\d(?:[.,]\d+)?)E[+-]\d{1,3}", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?\d{1,40}(?:[.,]\d{1,40})?(?:e[+-]?\d{1,3})?", re.ASCII)
_DIGITS_KEPT = 15
_ERRORS = frozenset(
    {"#N/A", "#NAME?", "#REF!", "#VALUE!", "#DIV/0!", "#NUM!", "#NULL!", "#SPILL!", "#CALC!", "#GETTING_DATA"}
)
_BEGINNINGS = (
    (b"PK\x03\x04", "an Excel workbook"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook, or one with a password"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
)
_SEPARATORS = {";": "semicolons", "\t": "tabs"}


def other_than_csv(beginning: bytes) -> str | None:
    """Say what a file is, by its first bytes, if it is no CSV in UTF-8."""
    return next((what for bytes_, what in _BEGINNINGS if beginning.startswith(bytes_)), None)


def other_separator(header: Sequence[str]) -> str | None:
    """Say what separates the cells of a header that was read as one cell, if that is no comma."""
    if len(header) != 1:
        return None
    return next((name for sign, name in _SEPARATORS.items() if sign in header[0]), None)


def is_formula_error(cell: Any) -> bool:
    """Tell whether a cell holds what a spreadsheet writes if a formula has no result."""
    return isinstance(cell, str) and cell in _ERRORS


def is_number(key: Any) -> bool:
    """Tell whether a spreadsheet has turned a key into a number, by its type or by the way it is written."""
    return isinstance(key, int | float) or (isinstance(key, str) and _SCIENTIFIC.fullmatch(key.strip()) is not None)


@dataclass(slots=True)
class LostKeys:
    """Keys that became numbers. Any key that would look like one of them may be meant, so it counts as present."""

    _numbers: dict[int, set[Decimal]] = field(default_factory=lambda: defaultdict(set))

    def add(self, key: Any) -> None:
        """Remember a key that is a number now."""
        scientific = _SCIENTIFIC.fullmatch(key.strip()) if isinstance(key, str) else None
        digits = sum(map(str.isdigit, scientific[1])) if scientific else _DIGITS_KEPT
        self._numbers[digits].add(_rounded(str(key).strip(), digits, ROUND_HALF_UP))

    def may_be(self, folded_key: str) -> bool:
        """Tell whether a key would look like one of them as a number, which keeps only some of its digits."""
        if not self._numbers or _NUMBER.fullmatch(folded_key) is None:
            return False
        return any(
            _rounded(folded_key, digits, how) in numbers
            for digits, numbers in self._numbers.items()
            for how in (ROUND_HALF_UP, ROUND_DOWN)
        )


def _rounded(number: str, digits: int, how: str) -> Decimal:
    return Context(prec=digits, rounding=how).create_decimal(number.replace(",", "."))
