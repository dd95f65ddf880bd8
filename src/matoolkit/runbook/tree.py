"""A YAML document as a tree that knows where everything stands.

Built on the parser's events rather than on a ready-made loader, because only so are all duplicate keys found,
aliases counted before they are expanded, depth bounded, and a megabyte read in a fraction of a second.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from matoolkit.runbook.templates import Json, Path

Scalar: TypeAlias = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the text, counted from 1."""

    line: int
    column: int


@dataclass(slots=True)
class Node:
    """A scalar, a list or a mapping, where it begins, and how many nodes it is with all that is in it."""

    position: Position
    value: "Scalar | list[Node] | dict[str, Entry]"
    size: int = field(default=1)

    def to_plain(self) -> Json:
        """Return the same as plain Python values."""
        match self.value:
            case dict() as entries:
                return {key: entry.node.to_plain() for key, entry in entries.items()}
            case list() as items:
                return [item.to_plain() for item in items]
            case scalar:
                return scalar

    def children(self) -> "Iterator[Node]":
        """List what is directly in it."""
        match self.value:
            case dict() as entries:
                yield from (entry.node for entry in entries.values())
            case list() as items:
                yield from items
            case _:
                pass


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a mapping, where it stands, and what it holds."""

    position: Position
    node: Node


def position_of(root: Node, path: Path, *, key: bool = False) -> Position:
    """Where a path leads: to the value, or with `key` to the key; as far as the path goes, if it goes nowhere."""
    node, position = root, root.position
    for depth, part in enumerate(path, start=1):
        wants_key = key and depth == len(path)
        match node.value, part:
            case dict() as entries, str() if part in entries:
                entry = entries[part]
                node = entry.node
                # A collection begins on a line of its own, so its key is a better position for it.
                at_key = wants_key or isinstance(node.value, dict | list) or node.value is None
                position = entry.position if at_key else node.position
            case list() as items, int() if part < len(items):
                node = items[part]
                position = node.position
            case _:
                break
    return position


_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", re.ASCII)
_LONGEST_NUMBER = 25
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def scalar_value(text: str) -> Scalar:
    """Say what an unquoted scalar means.

    A number is only what can be written back without loss: `007`, `1.50` and twenty digits stay text, for they
    are more likely an employee id or a version than a quantity.
    """
    if text in _WORDS:
        return _WORDS[text]  # type: ignore[no-any-return]
    match = _NUMBER.fullmatch(text) if len(text) <= _LONGEST_NUMBER else None
    if match is None:
        return text
    number = float(text) if match[2] else int(text)
    return number if str(number) == text and abs(number) < 2**63 else text
