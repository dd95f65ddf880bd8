"""Pages by keyset: a cursor says where the page before ended, so no page costs more than another."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Annotated, Generic, NamedTuple, TypeVar

from pydantic import Field

from matoolkit.api.shapes.naming import Shape
from matoolkit.errors import InvalidCursor

MOST_AT_ONCE = 1000
_LARGEST_ID = 2**63 - 1

ItemT = TypeVar("ItemT")
RowT = TypeVar("RowT")


class Page(Shape, Generic[ItemT]):
    """Some items, the cursor of the page after them if there is one, and how many there are on all pages."""

    items: list[ItemT]
    next: str | None = Field(None, description="Pass it on as `cursor` to get the next page; null on the last.")
    total: int | None = Field(None, description="Items that match the filters; null where they are not counted.")
    of: int | None = Field(None, description="Items without the filters; null where they are not counted.")


class Count(NamedTuple):
    """How many items the filters let through, and how many there are."""

    total: int
    of: int


class PageQuery(Shape):
    """Which page of a list is wanted."""

    limit: Annotated[int, Field(ge=1, le=MOST_AT_ONCE, description="Number of items on a page.")] = 100
    cursor: Annotated[str | None, Field(max_length=200, description="`next` of the page before.")] = None


def position(cursor: str | None, of: str) -> int | None:
    """Return the id at which the page before ended; a cursor of another list is refused."""
    if cursor is None:
        return None
    try:
        name, _, number = base64.urlsafe_b64decode(cursor.encode()).decode().rpartition(":")
        found = int(number)
    except (binascii.Error, ValueError):
        raise InvalidCursor from None
    if name != of or not 0 < found <= _LARGEST_ID:
        raise InvalidCursor
    return found


def page(
    rows: Sequence[RowT],
    limit: int,
    of: str,
    id_of: Callable[[RowT], int],
    shape: Callable[[RowT], ItemT],
    count: Count | None = None,
) -> Page[ItemT]:
    """Make a page of rows; one row more than wanted shows that there is a next page."""
    shown = rows[:limit]
    following = base64.urlsafe_b64encode(f"{of}:{id_of(shown[-1])}".encode()).decode() if len(rows) > limit else None
    counted = count or (None, None)
    return Page(items=[shape(row) for row in shown], next=following, total=counted[0], of=counted[1])


def whole(items: list[ItemT], most: int | None = None) -> Page[ItemT]:
    """Make a short list the only page; if it is cut, its length is not known."""
    count = len(items) if most is None or len(items) <= most else None
    return Page(items=items[:most], total=count, of=count)
