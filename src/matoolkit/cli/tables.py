"""Answers in every form that can be asked for: a table for people, JSON, JSON lines, CSV or YAML for programs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Any

import orjson
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from matoolkit.cli import wording
from matoolkit.cli.output import stdout, write, write_json

Item = Mapping[str, Any]
_GAP = 2
_NARROWEST = 8


class Form(StrEnum):
    """How data is written."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    YAML = "yaml"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, where its value is, how people are told it, and whether it is never cut."""

    title: str
    value: str | Callable[[Item], Any]
    told: Callable[..., str | Text] = wording.text
    is_number: bool = False
    is_whole: bool = False

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
        case Form.TABLE:
            return _print_table(list(items), columns)
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
        case Form.TABLE:
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
    items: Sequence[Item], columns: Sequence[Column], width: int | None, *, letters: bool = False
) -> Iterable[Text]:
    """Write a table; with a width it is made to fit, without one nothing is cut and no glyph is added."""
    plain = width is None
    # Programs need every column in its place; people do not need empty columns.
    shown = [column for column in columns if plain or any(column.of(item) not in (None, "", []) for item in items)]
    cells = [[column.cell(item, plain=plain, letters=letters) for column in shown] for item in items]
    head = [Text(column.title, style="bold") for column in shown]
    widths = [max(cell_len(row[at].plain) for row in chain([head], cells)) for at in range(len(shown))]
    if width is not None:
        least = [size if column.is_whole else _NARROWEST for column, size in zip(shown, widths, strict=True)]
        widths = _fitting(widths, least, width)
    for row in chain([head], cells):
        yield _line(row, widths, shown, letters=letters)


def has_only_letters(console: Console) -> bool:
    """Tell whether a terminal cannot show glyphs."""
    return not console.encoding.casefold().startswith("utf")


def _print_table(items: Sequence[Item], columns: Sequence[Column]) -> int:
    console = stdout()
    width = console.width if console.is_terminal else None
    if items:
        for line in table(items, columns, width, letters=has_only_letters(console)):
            console.print(line)
    return len(items)


def _fitting(widths: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Narrow the widest column again and again until the line fits, but none to less than can be read."""
    found = list(widths)
    while sum(found) + _GAP * (len(found) - 1) > width:
        spare = [at for at, size in enumerate(found) if size > least[at]]
        if not spare:
            break
        found[max(spare, key=lambda at: found[at])] -= 1
    return found


def _line(row: Sequence[Text], widths: Sequence[int], columns: Sequence[Column], *, letters: bool) -> Text:
    line = Text()
    for at, cell in enumerate(row):
        shown = cell.copy()
        wording.cut(shown, widths[at], letters=letters)
        room = " " * (widths[at] - cell_len(shown.plain))
        is_last = at == len(row) - 1
        line.append_text(
            Text.assemble(room, shown) if columns[at].is_number else Text.assemble(shown, "" if is_last else room)
        )
        line.append("" if is_last else " " * _GAP)
    line.rstrip()
    return line


def _print_csv(items: Sequence[Item], columns: Sequence[Column]) -> None:
    from matoolkit.admin.csvfiles import csv_lines

    header = [column.title.lower().replace(" ", "_") for column in columns]
    write(*csv_lines(header, ([column.of(item) for column in columns] for item in items)))


def _print_yaml(value: Any) -> None:
    import yaml

    write(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))
