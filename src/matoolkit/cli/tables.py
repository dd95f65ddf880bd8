"""Answers in every form that can be asked for: a table for people, JSON, JSON lines, CSV or YAML for programs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, zip_longest
from typing import Any

import orjson
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from matoolkit.cli import wording
from matoolkit.cli.output import stdout, write, write_json

Item = Mapping[str, Any]
_GAP = 2
# How narrow a column may become: one that is cut, one whose lines wrap, and one of times, in two lines.
_NARROWEST, _NARROWEST_WRAPPED, _TIME_IN_TWO_LINES = 8, 16, 10


class Form(StrEnum):
    """How data is written."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    YAML = "yaml"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, where its value is, and how people are told it.

    A table that is too wide for its terminal wraps the lines of a column, unless the column stays whole. Only a column
    that nobody decides by is cut.
    """

    title: str
    value: str | Callable[[Item], Any]
    told: Callable[..., str | Text] = wording.text
    is_number: bool = False
    is_whole: bool = False
    is_cut: bool = False

    def of(self, item: Item) -> Any:
        """Return the value itself."""
        return item.get(self.value) if isinstance(self.value, str) else self.value(item)

    def cell(self, item: Item, *, plain: bool, letters: bool) -> Text:
        """Return the value as people read it; a glyph is for people, not for programs that read columns."""
        value = self.of(item)
        match self.told:
            case wording.state:
                return Text(wording.text(value)) if plain else wording.state(value, letters=letters)
            case wording.counts:
                by_state = value if isinstance(value, dict) else {}
                return Text(wording.text(by_state)) if plain else wording.counts(by_state, letters=letters)
        told = self.told(value)
        return told if isinstance(told, Text) else Text(told)


def number(title: str, value: str | Callable[[Item], Any]) -> Column:
    """Make a column of numbers."""
    return Column(title, value, is_number=True, is_whole=True)


def status(title: str = "STATUS", value: str | Callable[[Item], Any] = "status") -> Column:
    """Make a column of states."""
    return Column(title, value, wording.state, is_whole=True)


def when(title: str, value: str) -> Column:
    """Make a column of times."""
    return Column(title, value, wording.moment, is_whole=True)


def print_items(items: Iterable[Item], columns: Sequence[Column], form: Form) -> int:
    """Print a list and return its length."""
    match form:
        case Form.JSONL:
            return sum(write_json(orjson.dumps(item)) for item in items)
        case Form.TABLE | Form.WIDE:
            return _print_table(list(items), columns, is_wide=form is Form.WIDE)
    known = list(items)
    match form:
        case Form.JSON:
            write_json(orjson.dumps(known, option=orjson.OPT_INDENT_2))
        case Form.CSV:
            _print_csv(known, columns)
        case Form.YAML:
            _print_yaml(known)
    return len(known)


def print_item(item: Item, columns: Sequence[Column], form: Form) -> None:
    """Print one thing."""
    match form:
        case Form.JSON:
            write_json(orjson.dumps(item, option=orjson.OPT_INDENT_2))
        case Form.YAML:
            _print_yaml(item)
        case Form.TABLE | Form.WIDE:
            console = stdout()
            for line in fields(item, columns, plain=not console.is_terminal, letters=has_only_letters(console)):
                console.print(line)
        case _:
            print_items([item], columns, form)


def fields(item: Item, columns: Sequence[Column], *, plain: bool, letters: bool = False) -> Iterable[Text]:
    """Write one thing line by line: a title and a value; what there is not is left out."""
    widest = max(len(column.title) for column in columns)
    for column in columns:
        cell = column.cell(item, plain=plain, letters=letters)
        if cell.plain:
            yield Text.assemble((f"{column.title.lower():<{widest}}  ", "dim"), cell)


def table(
    items: Sequence[Item],
    columns: Sequence[Column],
    width: int | None,
    *,
    letters: bool = False,
    plain: bool | None = None,
) -> Iterable[Text]:
    """Write a table; with a width it is made to fit, without one each item is a line. For programs it has no glyph."""
    plain = width is None if plain is None else plain
    # Programs need every column in its place; people do not need empty columns.
    shown = [column for column in columns if plain or any(column.of(item) not in (None, "", []) for item in items)]
    cells = [[column.cell(item, plain=plain, letters=letters) for column in shown] for item in items]
    head = [Text(column.title, style="bold") for column in shown]
    widths = [max(cell_len(row[at].plain) for row in chain([head], cells)) for at in range(len(shown))]
    fitting = widths if width is None else _fitting(widths, shown, width)
    if fitting is None:
        yield from _blocks(items, shown, width or 0, letters=letters)
        return
    for row in chain([head], cells):
        yield from _lines(row, fitting, shown, letters=letters)


def _blocks(items: Sequence[Item], columns: Sequence[Column], width: int, *, letters: bool) -> Iterable[Text]:
    """Write a field a line where a table does not fit."""
    indent = max(len(column.title) for column in columns) + _GAP
    for at, item in enumerate(items):
        if at:
            yield Text()
        for line in fields(item, columns, plain=False, letters=letters):
            yield from wording.wrapped(line, width, indent)


def has_only_letters(console: Console) -> bool:
    """Tell whether a terminal cannot show glyphs."""
    return not console.encoding.casefold().startswith("utf")


def _print_table(items: Sequence[Item], columns: Sequence[Column], *, is_wide: bool) -> int:
    console = stdout()
    width = console.width if console.is_terminal and not is_wide else None
    if items:
        for line in table(items, columns, width, letters=has_only_letters(console), plain=not console.is_terminal):
            console.print(line)
    return len(items)


def _fitting(widths: Sequence[int], columns: Sequence[Column], width: int) -> list[int] | None:
    """Narrow the widest column again and again until the line fits; none if that would leave too little to read.

    Times keep their line while there is room for them.
    """
    found, room = list(widths), width - _GAP * (len(widths) - 1)
    least = [_least(size, column) for size, column in zip(widths, columns, strict=True)]
    if sum(least) > room:
        times = [at for at, column in enumerate(columns) if column.told is wording.moment]
        for at in times:
            found[at] = least[at] = min(found[at], _TIME_IN_TWO_LINES)
    if sum(least) > room:
        return None
    while sum(found) > room:
        spare = [at for at, size in enumerate(found) if size > least[at]]
        found[max(spare, key=lambda at: found[at])] -= 1
    return found


def _least(size: int, column: Column) -> int:
    if column.is_whole:
        return size
    return min(size, _NARROWEST if column.is_cut else _NARROWEST_WRAPPED)


def _lines(row: Sequence[Text], widths: Sequence[int], columns: Sequence[Column], *, letters: bool) -> Iterable[Text]:
    """Write a row in as many lines as its longest cell needs."""
    cells = [
        _cell(cell, width, column, letters=letters) for cell, width, column in zip(row, widths, columns, strict=True)
    ]
    for parts in zip_longest(*cells, fillvalue=Text()):
        line = Text()
        for at, part in enumerate(parts):
            room = " " * (widths[at] - cell_len(part.plain))
            line.append_text(Text.assemble(room, part) if columns[at].is_number else Text.assemble(part, room))
            line.append(" " * _GAP)
        line.rstrip()
        yield line


def _cell(cell: Text, width: int, column: Column, *, letters: bool) -> list[Text]:
    if not column.is_cut:
        return wording.wrapped(cell, width)
    shown = cell.copy()
    wording.cut(shown, width, letters=letters)
    return [shown]


def _print_csv(items: Sequence[Item], columns: Sequence[Column]) -> None:
    from matoolkit.admin.csvfiles import csv_lines

    header = [column.title.lower().replace(" ", "_") for column in columns]
    write(*csv_lines(header, ([column.of(item) for column in columns] for item in items)))


def _print_yaml(value: Any) -> None:
    import yaml

    write(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))
