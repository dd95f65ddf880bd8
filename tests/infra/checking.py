"""What the Bicep compiler would refuse, as far as it can be told without it: syntax, names, modules, types."""

import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

from tests.infra.bicep import Declared, Node, Template, literal, named, properties, walk

TYPES = Path(__file__).parent / "types"
# What the templates use of what Bicep knows; another one is added here.
FUNCTIONS = frozenset(
    {"concat", "empty", "environment", "guid", "items", "join", "json", "map", "replace", "resourceGroup"}
    | {"resourceId", "sort", "split", "string", "subscriptionResourceId", "take", "tenant", "union", "uniqueString"}
)
DECORATORS = frozenset({"allowed", "description", "export", "maxLength", "maxValue", "minLength", "minValue"})
# Properties that belong to Bicep and not to the resource.
OF_BICEP = frozenset({"parent", "scope", "dependsOn"})

Shapes = dict[str, dict[str, str]]


@cache
def known_types() -> dict[str, Shapes]:
    """Return the objects of each resource type by name: a property's type, with ! if required and - if read-only."""
    found: dict[str, Shapes] = {}
    for file in sorted(TYPES.glob("*.json")):
        found |= json.loads(file.read_text(encoding="utf-8"))["types"]
    return found


def problems(template: Template, types: dict[str, Shapes] | None = None) -> list[str]:
    """Return everything that is wrong, each with its line."""
    faults = [(node.line, f"syntax: {node.text[:40]!r}") for node in walk(template.root) if node.is_broken]
    if not faults:
        faults += [*_names(template), *_unused(template), *_modules(template)]
        for resource in template.resources:
            faults += _Shape(known_types() if types is None else types, resource).faults()
    return [f"{template.path.name}:{line}: {said}" for line, said in sorted(faults)]


Fault = tuple[int, str]


# ---------------------------------------------------------------- names


def _names(template: Template) -> Iterator[Fault]:
    known = _declared_names(template)
    for node in walk(template.root):
        if node.type == "call_expression":
            allowed = DECORATORS if node.parent and node.parent.type == "decorator" else FUNCTIONS
            if named(node)[0].text not in allowed:
                yield node.line, f"there is no function {named(node)[0].text}"
        elif node.type == "identifier" and _is_reference(node) and node.text not in known | _bound_at(node):
            yield node.line, f"{node.text} is not declared"


def _declared_names(template: Template) -> set[str]:
    declaring = ("parameter_declaration", "variable_declaration", "type_declaration")
    found = {named(node)[0].text for node in template.of_type(*declaring)}
    found |= {one.symbol for one in (*template.resources, *template.modules)}
    for node in template.of_type("import_functionality"):
        found |= {part.text for part in named(node) if part.type == "identifier"}
    return found


def _bound_at(node: Node) -> set[str]:
    """Return the names of the loops and lambdas around a node."""
    found: set[str] = set()
    around = node.parent
    while around is not None:
        if around.type in {"lambda_expression", "for_statement"}:
            first = named(around)[0]
            found |= {part.text for part in ([first] if first.type == "identifier" else named(first))}
        around = around.parent
    return found


_DECLARATIONS = {f"{kind}_declaration" for kind in ("module", "output", "parameter", "resource", "type", "variable")}


def _is_reference(node: Node) -> bool:
    parent = node.parent
    if parent is None or parent.type in {"import_functionality", "for_loop_parameters"}:
        return False
    first = named(parent)[0]
    is_first = first is node
    if parent.type == "resource_expression":
        return is_first
    return not (is_first and parent.type in _DECLARATIONS | {"object_property", "call_expression"})


def _unused(template: Template) -> Iterator[Fault]:
    used = {node.text for node in walk(template.root) if node.type == "identifier" and _is_reference(node)}
    for before, node in pairwise([template.root, *named(template.root)]):
        is_exported = before.type == "decorators" and "@export()" in before.text
        if node.type in {"parameter_declaration", "variable_declaration"} and not is_exported:
            name = named(node)[0].text
            if name not in used:
                yield node.line, f"{name} is not used"


# ---------------------------------------------------------------- modules


def _modules(template: Template) -> Iterator[Fault]:
    for module in template.modules:
        inner = template.template_of(module)
        given = properties(properties(module.body)["params"])
        for name, node in given.items():
            if name not in inner.parameters:
                yield node.line, f"{module.kind} has no parameter {name}"
        for name, must in inner.parameters.items():
            if must and name not in given:
                yield module.body.line, f"{module.kind} needs {name}"
        for said in re.finditer(rf"\b{module.symbol}\.outputs\.(\w+)", template.root.text):
            if said[1] not in inner.outputs:
                yield module.body.line, f"{module.kind} has no output {said[1]}"


# ---------------------------------------------------------------- types


class _Shape:
    """Compares the body of a resource with what Azure's description of its type says."""

    def __init__(self, types: dict[str, Shapes], resource: Declared) -> None:
        self._resource = resource
        self._shapes = types.get(resource.kind)
        self._faults: list[Fault] = []

    def faults(self) -> list[Fault]:
        """Return what differs."""
        if self._shapes is None:
            return [(self._resource.body.line, f"no description of {self._resource.kind} is at hand")]
        self._object(self._resource.body, "", "")
        return self._faults

    def _say(self, node: Node, path: str, what: str) -> None:
        self._faults.append((node.line, f"{self._resource.kind}{path}: {what}"))

    def _object(self, node: Node, shape: str, path: str) -> None:
        assert self._shapes is not None
        known, given = self._shapes[shape], properties(node)
        for name, child in given.items():
            if not path and name in OF_BICEP:
                continue
            kind = known.get(name, known.get("*"))
            if kind is None:
                self._say(child, f"{path}.{name}", f"unknown; known are {', '.join(sorted(known))}")
            elif kind.startswith("-"):
                self._say(child, f"{path}.{name}", "is read-only")
            else:
                self._value(child, kind.removeprefix("!"), f"{path}.{name}")
        if not self._resource.is_existing:
            for name in (name for name, kind in known.items() if kind.startswith("!") and name not in given):
                self._say(node, path, f"needs {name}")

    def _value(self, node: Node, kind: str, path: str) -> None:
        assert self._shapes is not None
        for part in _branches(node):
            if kind.endswith("[]"):
                self._array(part, kind.removesuffix("[]"), path)
            elif kind in self._shapes:
                if part.type == "object":
                    self._object(part, kind, path)
                elif part.type in {"array", "boolean", "number", "string"}:
                    self._say(part, path, f"is {part.type}, and an object is expected")
            else:
                self._simple(part, [word.strip() for word in kind.split("|")], path)

    def _array(self, node: Node, kind: str, path: str) -> None:
        if node.type == "array":
            for item in named(node):
                self._value(item, kind, f"{path}[]")
        elif node.type == "call_expression" and named(node)[0].text == "map":
            self._value(named(named(named(node)[1])[-1])[-1], kind, f"{path}[]")
        elif node.type in {"boolean", "number", "object", "string"}:
            self._say(node, path, f"is {node.type}, and an array is expected")

    def _simple(self, node: Node, words: list[str], path: str) -> None:
        expected = {"string": "string", "number": "int", "boolean": "bool"}.get(node.type)
        if "any" in words or (expected is None and node.type not in {"array", "object"}):
            return
        known = literal(node)
        values = [word for word in words if word not in {"string", "int", "bool"}]
        if expected == "string" and values:
            # Azure may take others where `string` stands beside the values, but those that it names are enough for us.
            if known is not None and known not in values:
                self._say(node, path, f"{known!r} is none of {', '.join(values)}")
        elif expected not in words:
            self._say(node, path, f"is {node.type}, and {' or '.join(words)} is expected")


def _branches(node: Node) -> Iterator[Node]:
    """Return what an expression may become: both sides of a choice, the parts of a list, the items of a loop."""
    parts = named(node)
    if node.type == "ternary_expression":
        yield from (one for part in parts[1:] for one in _branches(part))
    elif node.type == "call_expression" and parts[0].text == "concat":
        yield from (one for part in named(parts[1]) for one in _branches(part))
    else:
        yield node
