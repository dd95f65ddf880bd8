"""Bicep templates as a syntax tree with questions: what they declare, what they pass on, what a value is.

The Bicep compiler cannot be had as a package, so the tests read the templates themselves. Values that are computed only
when a template is deployed are kept as their text.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import tree_sitter
import tree_sitter_bicep

_PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bicep.language()))


@dataclass(eq=False)
class Node:
    """A part of a template. A copy of the parser's own, whose text is not safe to read once other trees come and go."""

    type: str
    text: str
    line: int
    is_named: bool
    is_broken: bool
    parent: "Node | None" = field(repr=False)
    children: list["Node"] = field(default_factory=list, repr=False)


def _copied(node: tree_sitter.Node, source: bytes, parent: Node | None) -> Node:
    text = source[node.start_byte : node.end_byte].decode()
    copy = Node(node.type, text, node.start_point.row + 1, node.is_named, node.is_error or node.is_missing, parent)
    copy.children = [_copied(child, source, copy) for child in node.children]
    return copy


class Expression(str):
    """The text of something that is computed when the template is deployed."""

    __slots__ = ()


def named(node: Node) -> list[Node]:
    """Return the parts of a node without punctuation and comments."""
    return [child for child in node.children if child.is_named and child.type not in {"comment", "diagnostic_comment"}]


def walk(node: Node) -> Iterator[Node]:
    """Return a node and everything in it."""
    yield node
    for child in node.children:
        yield from walk(child)


def literal(node: Node) -> str | None:
    """Return the value of a string without anything computed in it."""
    if node.type != "string" or any(child.type == "interpolation" for child in node.children):
        return None
    return "".join(child.text for child in node.children if child.is_named)


def properties(node: Node) -> dict[str, Node]:
    """Return the properties of an object by name; a computed name is its text."""
    found = {}
    for item in named(node):
        if item.type == "object_property" and len(named(item)) > 1:
            key, value = named(item)[0], named(item)[-1]
            word = literal(key)
            found[key.text if word is None else word] = value
    return found


def value(node: Node) -> Any:
    """Return a value as Python's; what is computed is an `Expression`."""
    match node.type:
        case "object":
            return {name: value(child) for name, child in properties(node).items()}
        case "array":
            return [value(child) for child in named(node)]
        case "number":
            return int(node.text)
        case "boolean":
            return node.text == "true"
        case "string" if (known := literal(node)) is not None:
            return known
        case _:
            return Expression(node.text)


@dataclass(frozen=True)
class Declared:
    """A resource or a module: its name in the template, what it is, and its body."""

    symbol: str
    kind: str
    body: Node
    is_existing: bool
    is_conditional: bool

    @property
    def value(self) -> dict[str, Any]:
        """Return the body with its values."""
        found: dict[str, Any] = value(self.body)
        return found


class Template:
    """One Bicep file."""

    def __init__(self, path: Path, source: bytes | None = None) -> None:
        self.path = path
        source = path.read_bytes() if source is None else source
        self.root = _copied(_PARSER.parse(source).root_node, source, None)

    def of_type(self, *types: str) -> list[Node]:
        """Return the nodes of these types, nested ones included."""
        return [node for node in walk(self.root) if node.type in types]

    @cached_property
    def parameters(self) -> dict[str, bool]:
        """Return the parameters, and whether each must be given."""
        found = {}
        for node in self.of_type("parameter_declaration"):
            name, *rest = named(node)
            found[name.text] = all(part.type in {"type", "primitive_type"} for part in rest)
        return found

    @cached_property
    def outputs(self) -> set[str]:
        """Return the names of the outputs."""
        return {named(node)[0].text for node in self.of_type("output_declaration")}

    @cached_property
    def variables(self) -> dict[str, Node]:
        """Return the variables by name."""
        return {named(node)[0].text: named(node)[-1] for node in self.of_type("variable_declaration")}

    @cached_property
    def resources(self) -> list[Declared]:
        """Return the resources; a nested one has its whole type."""
        return list(self._resources(self.root, ""))

    def _resources(self, node: Node, parent: str) -> Iterator[Declared]:
        for child in node.children:
            if child.type == "resource_declaration":
                found = _declared(child, parent)
                yield found
                yield from self._resources(found.body, found.kind)
            else:
                yield from self._resources(child, parent)

    @cached_property
    def modules(self) -> list[Declared]:
        """Return the modules that the template uses."""
        return [_declared(node, "") for node in self.of_type("module_declaration")]

    def template_of(self, module: Declared) -> "Template":
        """Return the template of a module."""
        return template((self.path.parent / module.kind).resolve())


def _declared(node: Node, parent: str) -> Declared:
    symbol, kind = named(node)[:2]
    text = literal(kind) or ""
    if parent:
        whole, _, version = parent.partition("@")
        text = f"{whole}/{text}@{version}"
    body = next(part for part in walk(node) if part.type == "object")
    existing = any(child.text == "existing" for child in node.children)
    conditional = any(child.type == "if_statement" for child in node.children)
    return Declared(symbol.text, text, body, existing, conditional)


@cache
def template(path: Path) -> Template:
    """Read a template, once."""
    return Template(path)
