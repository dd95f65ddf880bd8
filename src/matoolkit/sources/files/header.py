"""The first row of a list, which names the columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matoolkit.domain.cells import MOST_COLUMNS
from matoolkit.domain.keys import folded
from matoolkit.errors import SourceFailed

# Columns without a name may be between the others.
_WIDEST = 1_000


@dataclass(frozen=True, slots=True)
class Header:
    """The columns of a list, and where in a row they stand, as far as the last. Those without a name are left out."""

    columns: Sequence[str]
    places: Sequence[int]
    width: int


def read_header(name: str, cells: Sequence[Any]) -> Header:
    """Read the names of the columns; each must be there once."""
    names = [" ".join(str("" if cell is None else cell).split()) for cell in cells]
    places = [place for place, column in enumerate(names) if column]
    if not places:
        raise SourceFailed(f"the file '{name}' is empty", hint="its first row names the columns")
    columns = [names[place] for place in places]
    width = places[-1] + 1
    if len(columns) > MOST_COLUMNS or width > _WIDEST:
        message = f"the file '{name}' has columns as far as place {width:,}"
        raise SourceFailed(message, hint=f"at most {MOST_COLUMNS} can be used")
    seen: set[str] = set()
    for column in columns:
        if folded(column) in seen:
            message = f"the file '{name}' has two columns '{column}'"
            raise SourceFailed(message, hint="give one of them another name in the first row")
        seen.add(folded(column))
    return Header(columns, places, width)
