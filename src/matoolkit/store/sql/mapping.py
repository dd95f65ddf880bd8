"""Which column of a statement is which field of a record."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple


class Arrangement(NamedTuple):
    """For each argument of a record, in its order, the column that it comes from, or the name of a given value."""

    sources: Sequence[int | str]

    def of(self, columns: Sequence[Iterable[Any]], given: Mapping[str, Any]) -> list[Iterable[Any]]:
        """Return the columns as the record takes them."""
        return [columns[one] if isinstance(one, int) else repeat(given[one]) for one in self.sources]


def arrangement(make: Callable[..., Any], columns: Sequence[str], given: Collection[str]) -> Arrangement | None:
    """Work out how columns become what a function takes; there is nothing to arrange if it takes them as they come.

    A record takes them by name, so that the order of its fields means nothing. A default of a field stands for nothing
    either: a column that was forgotten would pass for one that is empty.
    Anything else than a record takes the columns in their order.
    """
    if isinstance(make, partial) and is_dataclass(make.func):
        raise TypeError(f"hand over what is given for all rows by name, not in a partial {make.func.__name__}")
    if not isinstance(make, type) or not is_dataclass(make):
        if given:
            raise TypeError(f"{make!r} is no record, and has no fields for {', '.join(given)}")
        return None
    names = [field.name for field in fields(make) if field.init]
    record = make.__name__
    for name in columns:
        if name not in names:
            raise TypeError(f"{record} has no field for {name}")
        if name in given:
            raise TypeError(f"{record}.{name} is both a column and given")
    places: dict[str, int | str] = {name: name for name in given} | {name: place for place, name in enumerate(columns)}
    for name in names:
        if name not in places:
            raise TypeError(f"{record}.{name} has no column")
    sources = [places[name] for name in names]
    return None if sources == list(range(len(columns))) else Arrangement(sources)
