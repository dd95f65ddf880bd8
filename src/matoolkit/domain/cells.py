"""Values of a source as JSON: what a database returns, written so that nothing is lost on the way."""

import base64
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from types import UnionType
from typing import Any
from uuid import UUID

import orjson

from matoolkit.domain.texts import storable
from matoolkit.runbook.templates import Json

# The limit for a query or a file: a database page holds a row of pointers to this many long texts, and our own columns.
MOST_COLUMNS = 300
_LARGEST_NUMBER = 2**63
# How a cell is read back from a report: a text or null as it stands, anything else as JSON, or it was not there.
_AS_IT_STANDS, _JSON, _ABSENT = "t", "j", "-"


class UnreadableCell(ValueError):
    """A value that is not what its column should hold; its text says why and does not repeat it."""


def json_cell(value: Any) -> Json:
    """Write a value as JSON: times in UTC, decimals and large numbers as text, GUIDs in lower case, bytes in base64."""
    if value is None or isinstance(value, str | bool):
        return value
    for kinds, write in _WRITERS:
        if isinstance(value, kinds):
            return write(value)
    return str(value)


def _whole_number(value: int) -> Json:
    return value if abs(value) < _LARGEST_NUMBER else str(value)


def _number(value: float) -> Json:
    return value if math.isfinite(value) else str(value)


def _instant(value: datetime) -> Json:
    try:
        instant = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        # At either end of the calendar there is no such time in UTC.
        return value.isoformat()
    return instant.isoformat().replace("+00:00", "Z")


_WRITERS: tuple[tuple[type | UnionType, Callable[[Any], Json]], ...] = (
    (int, _whole_number),
    (float, _number),
    (datetime, _instant),
    (date, date.isoformat),
    (Decimal | time | UUID, str),
    (bytes | bytearray | memoryview, lambda value: base64.b64encode(bytes(value)).decode()),
    (list | tuple, lambda value: [json_cell(item) for item in value]),
    (dict, lambda value: {str(key): json_cell(item) for key, item in value.items()}),
)


def json_text(value: Json) -> bytes:
    """Write JSON as text; a half of a character, which no database takes, is replaced."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return orjson.dumps(_storable(value))


def report_text(value: Json) -> str | None:
    """Write JSON as people want to see it in a report: texts as they are, lists as JSON, nothing for null."""
    if value is None or isinstance(value, str):
        return value
    return orjson.dumps(value).decode()


def cell_kinds(row: Mapping[str, Json], columns: Iterable[str]) -> str:
    """Say how the cells of a row are to be read back from a report, a letter for each column (rule O14).

    Nearly all cells are texts or null, which stand there as they are: what follows the last other one is left out.
    """
    kinds = (
        _ABSENT if column not in row else _AS_IT_STANDS if isinstance(row[column], str | None) else _JSON
        for column in columns
    )
    return "".join(kinds).rstrip(_AS_IT_STANDS)


def typed_row(columns: Collection[str], texts: Sequence[str | None], kinds: str) -> dict[str, Json]:
    """Read a row back from a report, as it was read from the source."""
    cells = zip(columns, texts, kinds.ljust(len(columns), _AS_IT_STANDS), strict=False)
    return {
        column: orjson.loads(text) if kind == _JSON and text is not None else text
        for column, text, kind in cells
        if kind != _ABSENT
    }


def _storable(value: Json) -> Json:
    match value:
        case str():
            return storable(value)
        case list():
            return [_storable(item) for item in value]
        case dict():
            return {storable(key): _storable(item) for key, item in value.items()}
        case _:
            return value


def multi_valued_cell(value: Any, packing: str) -> Json:
    """Unpack a multi-valued column into a list; null stays null, and what is empty between delimiters is left out."""
    match value:
        case None:
            return None
        case list() | tuple():
            return json_cell(value)
        case str() if packing == "json_array":
            return _json_array(value)
        case str():
            delimiter = ";" if packing == "semicolon_delimited" else ","
            return [item.strip() for item in value.split(delimiter) if item.strip()]
        case _:
            return [json_cell(value)]


def _json_array(text: str) -> Json:
    if not text.strip():
        return []
    try:
        items = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise UnreadableCell("it is not a JSON array") from None
    if not isinstance(items, list):
        raise UnreadableCell("it is JSON, but not an array")
    return items
