"""The texts in which Databricks returns values, as what their columns hold.

A value that cannot be read as its column's type stays text: one odd cell must not lose a whole result.
"""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

_Reader: TypeAlias = Callable[[str], Any]


def readers(columns: Sequence[Mapping[str, Any]]) -> list[_Reader | None]:
    """Return what reads each column of a manifest; None where the text is the value."""
    return [_reader(column) for column in columns]


def read_rows(rows: Sequence[Sequence[Any]], reading: Sequence[_Reader | None]) -> list[list[Any]]:
    """Read rows; one that has more or fewer values than there are columns is a `ValueError`."""
    return [
        [value if read is None or not isinstance(value, str) else _read(read, value) for read, value in pairs]
        for pairs in (zip(reading, row, strict=True) for row in rows)
    ]


def read_instant(text: str) -> datetime:
    """Read an instant. One without zone is in UTC: batch_time_zone is for wall-clock times, TIMESTAMP_NTZ."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _read(read: _Reader, text: str) -> Any:
    try:
        return read(text)
    except (ValueError, InvalidOperation, OverflowError, RecursionError):
        return text


def _reader(column: Mapping[str, Any]) -> _Reader | None:
    kind = str(column.get("type_name", "")).upper()
    if kind.startswith("TIMESTAMP"):
        full = f"{kind} {column.get('type_text', '')}".upper()
        return datetime.fromisoformat if "TIMESTAMP_NTZ" in full else read_instant
    return _READERS.get(kind)


def _yes_or_no(text: str) -> bool:
    try:
        return {"true": True, "false": False}[text.lower()]
    except KeyError:
        raise ValueError("neither true nor false") from None


def _structure(text: str) -> Any:
    return json.loads(text, parse_float=_exact)


def _exact(text: str) -> float | Decimal:
    """Keep the digits of a decimal that a float would round away."""
    number, decimal = float(text), Decimal(text)
    return number if Decimal(repr(number)) == decimal else decimal


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_READERS: dict[str, _Reader] = {
    **dict.fromkeys(("BYTE", "SHORT", "INT", "LONG"), int),
    **dict.fromkeys(("FLOAT", "DOUBLE"), float),
    **dict.fromkeys(("ARRAY", "MAP", "STRUCT"), _structure),
    "DECIMAL": Decimal,
    "BOOLEAN": _yes_or_no,
    "DATE": date.fromisoformat,
    "BINARY": _bytes,
}
