"""YAML text to a tree, with all problems of the YAML itself."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml
from yaml import CLoader, events

from matoolkit.errors import Finding
from matoolkit.runbook.findings import finding
from matoolkit.runbook.source import Source
from matoolkit.runbook.tree import Entry, Node, Position, scalar_value

MAX_DEPTH = 50
MAX_NODES = 250_000

# What the parser says, and what an author should do about it.
_HINTS = (
    ("mapping values are not allowed", "put a value that contains ': ' in quotes, or check the indentation"),
    ("found unexpected end of stream", "a quote is opened and never closed"),
    ("could not find expected ':'", "a key needs ': ' after it, or the line above is not finished"),
    ("did not find expected key", "check the indentation of this line, and that every quote above it is closed"),
    ("did not find expected '-' indicator", "check the indentation of this line against the lines above"),
    ("did not find expected ',' or ']'", "close the list with ']'"),
    (
        "did not find expected ',' or '}'",
        "close the mapping with '}'; a template such as {{Name}} needs quotes",
    ),
    ("found character that cannot start any token", "put the value in quotes"),
    ("found unknown escape character", "in double quotes write \\\\ for a backslash, or use single quotes"),
    (
        "did not find expected alphabetic or numeric character",
        "put a value that begins with & or * in quotes",
    ),
    ("while scanning a simple key", "a key needs ': ' after it"),
)
_OPENED = ("while scanning a quoted scalar", "while parsing a flow", "while scanning a simple key")
_UNQUOTED_TEMPLATE = re.compile(r"[:\-,\[]\s+\{\{")


class _Stop(Exception):
    """Reading cannot go on."""

    def __init__(self, found: Finding) -> None:
        super().__init__(found.message)
        self.found = found


@dataclass(slots=True)
class _Reader:
    """Folds the parser's events into nodes."""

    stream: Iterator[Any]
    problems: list[Finding] = field(default_factory=list)
    anchors: dict[str, Node | None] = field(default_factory=dict)
    nodes: int = 0

    def document(self) -> Node | None:
        next(self.stream)
        if isinstance(next(self.stream), events.StreamEndEvent):
            return None
        root = self.node(next(self.stream), 1)
        next(self.stream)
        if not isinstance(following := next(self.stream), events.StreamEndEvent):
            self.report("RB009", "a second document begins here; a runbook is one document", following)
        return root

    def node(self, event: Any, depth: int) -> Node:
        if depth > MAX_DEPTH:
            self.stop("RB008", f"the document is nested more than {MAX_DEPTH} levels deep", event)
        if isinstance(event, events.AliasEvent):
            return self.counted(self.aliased(event), event)
        if event.tag is not None:
            self.report("RB010", "a tag is not supported", event, "put a value that begins with ! in quotes")
        # An anchor that is still open refers to itself; None marks it until it is closed.
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        node = self.collected(event, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def collected(self, event: Any, depth: int) -> Node:
        match event:
            case events.ScalarEvent():
                text = event.value
                if "\0" in text:
                    self.report("RB002", "the text holds a NUL character", event)
                value = scalar_value(text) if event.implicit[0] and not event.style else text
                return self.counted(Node(_position(event), value), event)
            case events.SequenceStartEvent():
                items = [self.item(item, event, depth) for item in self.until(events.SequenceEndEvent)]
                return self.sized(Node(_position(event), items), event)
            case _:
                return self.sized(Node(_position(event), self.mapping(event, depth)), event)

    def item(self, event: Any, sequence: Any, depth: int) -> Node:
        node = self.node(event, depth + 1)
        # There is no value after the dash, so the finding points at the dash.
        if node.value is None and not sequence.flow_style and event.start_mark.index == event.end_mark.index:
            node.position = Position(node.position.line, node.position.column - 1)
        return node

    def mapping(self, start: Any, depth: int) -> dict[str, Entry] | str:
        entries: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        template = None
        for key_event in self.until(events.MappingEndEvent):
            key = self.key(key_event, depth)
            value = self.node(next(self.stream), depth + 1)
            if isinstance(key, Node):
                template = template or self.unquoted_template(start, key)
            elif key == "<<" and not key_event.style:
                merged |= self.merged(value)
            elif key in entries:
                first = entries[key].position.line
                self.report("RB005", f"key '{key}' is repeated here; it is already on line {first}", key_event)
            elif key is not None:
                entries[key] = Entry(_position(key_event), value)
        return template or {**merged, **entries}

    def key(self, event: Any, depth: int) -> str | Node | None:
        """Return the text of a key, or the mapping that `{{name}}` without quotes has in its place."""
        if isinstance(event, events.ScalarEvent):
            return str(event.value)
        node = self.node(event, depth + 1)
        if isinstance(event, events.MappingStartEvent) and event.flow_style:
            return node
        self.report("RB010", "a key is text, not a collection or an alias", event)
        return None

    def unquoted_template(self, start: Any, inner: Node) -> str:
        """Report `{{name}}` without quotes, and read it as the intended text, so that it is reported only once."""
        message = "a template is not in quotes, so YAML reads it as a mapping"
        self.report("RB012", message, start, 'put the value in quotes: "{{Name}}"')
        return f"{{{{{next(iter(inner.value), '')}}}}}" if isinstance(inner.value, dict) else ""

    def merged(self, value: Node) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        for source in value.value if isinstance(value.value, list) else [value]:
            if isinstance(source.value, dict):
                entries = {**source.value, **entries}
            else:
                position = source.position
                message = "'<<' merges mappings, and this is not one"
                self.problems.append(finding("RB010", message, line=position.line, column=position.column))
        return entries

    def aliased(self, event: Any) -> Node:
        if event.anchor not in self.anchors:
            hint = "put a value that begins with * in quotes"
            self.stop("RB004", "this refers to an anchor that is not set before it", event, hint)
        node = self.anchors[event.anchor]
        if node is None:
            self.stop("RB008", "this refers to something that contains it", event)
        return node

    def until(self, end: type) -> Iterator[Any]:
        while not isinstance(event := next(self.stream), end):
            yield event

    def sized(self, node: Node, event: Any) -> Node:
        node.size = 1 + sum(child.size for child in node.children())
        self.nodes += 1
        return self.bounded(node, event)

    def counted(self, node: Node, event: Any) -> Node:
        self.nodes += node.size
        return self.bounded(node, event)

    def bounded(self, node: Node, event: Any) -> Node:
        if self.nodes > MAX_NODES:
            hint = "aliases count each time they are used"
            self.stop("RB008", f"the document has more than {MAX_NODES:,} values", event, hint)
        return node

    def report(self, code: str, message: str, event: Any, hint: str | None = None) -> None:
        position = _position(event)
        self.problems.append(finding(code, message, hint, line=position.line, column=position.column))

    def stop(self, code: str, message: str, event: Any, hint: str | None = None) -> NoReturn:
        position = _position(event)
        raise _Stop(finding(code, message, hint, line=position.line, column=position.column))


def read_yaml(source: Source) -> tuple[Node | None, list[Finding]]:
    """Read a document as far as it is YAML; without a tree there is at least one problem."""
    reader = _Reader(yaml.parse(source.text, Loader=CLoader))
    try:
        root = reader.document()
    except _Stop as stop:
        return None, [*reader.problems, stop.found]
    except yaml.MarkedYAMLError as broken:
        return None, [*reader.problems, *_syntax_problem(broken, source, reader.problems)]
    if root is None or root.value is None:
        return None, [*reader.problems, finding("RB006", "the document is empty")]
    return root, reader.problems


def _position(event: Any) -> Position:
    return Position(event.start_mark.line + 1, event.start_mark.column + 1)


def _syntax_problem(broken: yaml.MarkedYAMLError, source: Source, reported: list[Finding]) -> list[Finding]:
    said = f"{broken.context or ''} {broken.problem}"
    # The parser gives up far behind a bracket that is never closed, but the author fixes it where it was opened.
    is_unclosed = any(words in said for words in _OPENED)
    mark = (is_unclosed and broken.context_mark) or broken.problem_mark or broken.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    # The end of the text is noticed one line too late to show it.
    if line > len(source.lines):
        line, column = len(source.lines), len(source.lines[-1]) + 1
    text = source.line(line)
    if "tab" in said or ("cannot start any token" in said and text[column - 1 : column] == "\t"):
        return [
            finding("RB011", "there is a tab where only spaces are allowed", line=line, column=text.find("\t") + 1 or 1)
        ]
    if any(known.code == "RB012" and known.line == line for known in reported):
        return []
    if _UNQUOTED_TEMPLATE.search(text):
        message = "a template is not in quotes, so YAML cannot read it"
        return [finding("RB012", message, 'put the value in quotes: "{{Name}}"', line=line, column=column)]
    advice = next((advice for words, advice in _HINTS if words in said), None)
    return [finding("RB004", f"this is not valid YAML: {broken.problem}", advice, line=line, column=column)]
