"""Which types values have on their way to SQL Server: as parameters, and as cells of JSON."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Boolean, Integer
from sqlalchemy.types import TypeEngine

from matoolkit.store.dialect.questions import is_text
from matoolkit.store.dialect.types import FoldedKey, Instant

# ODBC's numbers for types, with the size and the digits after the point.
_BIGINT, _TINYINT, _DATETIME2 = (-5, 0, 0), (-6, 0, 0), (93, 26, 6)
# A text that fits is compared with columns as it is; one of unlimited length would have them converted.
_NVARCHAR, _NVARCHAR_MAX = (-9, 4000, 0), (-9, 0, 0)
_SURELY_FITS = 4000 // 2  # characters: one may take two places

EXACT_COLLATION = "Latin1_General_100_BIN2"


def driver_types(kinds: Sequence[TypeEngine[Any]], values: Sequence[Any]) -> list[tuple[int, int, int]]:
    """Tell the driver of which type each parameter is, in the form that `setinputsizes` takes."""
    return list(map(_driver_type, kinds, values))


def _driver_type(kind: TypeEngine[Any], value: Any) -> tuple[int, int, int]:
    if isinstance(kind, Boolean) or isinstance(value, bool):
        return _TINYINT
    if isinstance(kind, Integer) or isinstance(value, int):
        return _BIGINT
    if isinstance(kind, Instant) or isinstance(value, datetime):
        return _DATETIME2
    is_short = length_of(kind) is not None and (value is None or len(value) <= _SURELY_FITS)
    return _NVARCHAR if is_short else _NVARCHAR_MAX


def json_type(kind: TypeEngine[Any]) -> str:
    """Name the type in which a cell is read; a text is read whole, for a shorter type would cut it silently."""
    if isinstance(kind, Instant):
        return "DATETIME2(6)"
    return "BIT" if isinstance(kind, Boolean) else "BIGINT" if isinstance(kind, Integer) else "NVARCHAR(MAX)"


def read_from_json(name: str, kind: TypeEngine[Any]) -> str:
    """Select a cell as a column takes it.

    A text may be one longer than its column. So the column refuses what is too long, nothing that is too long equals
    what the column has, and the comparison is still one of short texts.
    """
    length = length_of(kind) if is_text(kind) else None
    if length is None:
        return f"[{name}]"
    # The values arrive in the collation of the database, which must not meet that of a folded key.
    collated = f" COLLATE {EXACT_COLLATION}" if kind is FoldedKey else ""
    return f"CAST([{name}] AS NVARCHAR({length + 1})){collated} AS [{name}]"


def length_of(kind: TypeEngine[Any]) -> int | None:
    """Return how long a text of a type may be, if there is a limit."""
    length: int | None = getattr(kind, "length", None) or getattr(getattr(kind, "impl", None), "length", None)
    return length
