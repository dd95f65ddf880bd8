"""Names of data tables and their columns, made from names that others chose (rule D2).

What others wrote never becomes part of a statement as it is: only letters, digits and underscores remain,
cut to what every database allows, and what then looks the same is told apart by a number.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from matoolkit.domain.texts import storable

# Columns that PostgreSQL gives every table. SQLite's `rowid` and `oid` may be the names of columns, too.
_SYSTEM_COLUMNS = frozenset({"ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"})
LONGEST_NAME = 63  # in bytes; PostgreSQL cuts what is longer without a word


@dataclass(frozen=True, slots=True)
class DataTableName:
    """Where a data table is: its name, and its schema if it is not beside the other tables."""

    name: str
    schema: str | None


def data_table_name(runbook: str, version: int, is_taken: Callable[[str], bool]) -> str:
    """Choose the name of the table for a version of a runbook."""
    ending = f"_v{version}"
    stem = _plain(f"runbook_{runbook}").lower()
    return _first_free(stem, ending, is_taken)


def column_names(sources: Iterable[str], known: Mapping[str, str], reserved: Iterable[str]) -> dict[str, str]:
    """Choose a column for each source name that is not known yet, as it is stored; known ones keep theirs."""
    taken = {name.casefold() for name in (*known.values(), *reserved, *_SYSTEM_COLUMNS)}
    chosen: dict[str, str] = {}
    for source in map(storable, sources):
        if source not in known and source not in chosen:
            name = _first_free(_plain(source) or "column", "", lambda name: name.casefold() in taken)
            taken.add(name.casefold())
            chosen[source] = name
    return chosen


def _plain(name: str) -> str:
    letters = (letter if letter.isalnum() or letter == "_" else " " for letter in name)
    return "_".join("".join(letters).split()).strip("_")


def _first_free(stem: str, ending: str, is_taken: Callable[[str], bool]) -> str:
    name = _cut(stem, ending) + ending
    number = 2
    while is_taken(name):
        mark = f"_{number}{ending}"
        name = _cut(stem, mark) + mark
        number += 1
    return name


def _cut(stem: str, ending: str) -> str:
    room = LONGEST_NAME - len(ending.encode())
    return stem.encode()[:room].decode(errors="ignore")
