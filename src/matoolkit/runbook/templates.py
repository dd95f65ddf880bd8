"""Templates: `{{name}}` in parameters and function names (rules R6, R7).

A value that is exactly one template keeps the variable's type; inside a longer text the value is written as text.
The value of a variable is data and is never read as a template again.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from typing import TypeAlias

import orjson

from matoolkit.clock import as_utc
from matoolkit.errors import AmbiguousVariable, NotText, UnresolvedVariable

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Path: TypeAlias = "tuple[str | int, ...]"

SPECIAL_VARIABLES = ("_batch_id", "_batch_start_time", "_member_key", "_runbook_name", "_runbook_version")


class TemplateSyntaxProblem(ValueError):
    """A text that is not a well-formed template."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A place in a template where a value goes."""

    name: str


@dataclass(frozen=True, slots=True)
class Use:
    """A variable that a value needs: where in the value, and whether it stands there alone."""

    variable: str
    path: Path
    is_whole_value: bool


class Scope(dict[str, Json]):
    """The values of variables for one member, or for the init of a batch; specials come before outputs before data."""

    __slots__ = ("layers",)

    def __init__(self, specials: Mapping[str, Json], outputs: Mapping[str, Json], data: Mapping[str, Json]) -> None:
        super().__init__(data)
        self.update(outputs)
        self.update(specials)
        self.layers = (specials, outputs, data)

    def __missing__(self, name: str) -> Json:
        """Look a name up exactly, else in any case."""
        folded = name.casefold()
        for layer in self.layers:
            candidates = [known for known in layer if known.casefold() == folded]
            if len(candidates) > 1:
                raise AmbiguousVariable(name, candidates)
            if candidates:
                return layer[candidates[0]]
        raise UnresolvedVariable(name, [known for layer in self.layers for known in layer])


# Makes a value for the member or init of a scope.
Resolver: TypeAlias = Callable[[Scope], Json]


def special_variables(
    *, batch_id: int, batch_start_time: datetime | None, runbook_name: str, runbook_version: int, member_key: str | None
) -> Mapping[str, Json]:
    """Return the special variables; init has no member, so there is no `_member_key`."""
    shared = _shared_variables(batch_id, batch_start_time, runbook_name, runbook_version)
    return shared if member_key is None else {**shared, "_member_key": member_key}


@lru_cache(maxsize=128)
def _shared_variables(
    batch_id: int, batch_start_time: datetime | None, runbook_name: str, runbook_version: int
) -> Mapping[str, Json]:
    start = as_utc(batch_start_time).isoformat().replace("+00:00", "Z") if batch_start_time else None
    return {
        "_batch_id": batch_id,
        "_batch_start_time": start,
        "_runbook_name": runbook_name,
        "_runbook_version": runbook_version,
    }


def parse_template(text: str) -> tuple[str | Variable, ...]:
    """Split a text into literal parts and variables."""
    parts: list[str | Variable] = []
    position = 0
    while (opening := text.find("{{", position)) >= 0:
        parts.append(_plain(text[position:opening]))
        closing = text.find("}}", opening)
        if closing < 0:
            raise TemplateSyntaxProblem("'{{' is not closed by '}}'")
        parts.append(Variable(_variable_name(text[opening + 2 : closing])))
        position = closing + 2
    parts.append(_plain(text[position:]))
    return tuple(part for part in parts if part != "")


def entries(value: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """List every key of a value and what it holds, nested ones included."""
    match value:
        case dict():
            for key, item in value.items():
                yield (*path, key), item
                yield from entries(item, (*path, key))
        case list():
            for index, item in enumerate(value):
                yield from entries(item, (*path, index))
        case _:
            pass


def texts(value: Json, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """List every text in a value, nested ones included, in the order in which they stand."""
    match value:
        case str():
            yield path, value
        case list():
            for index, item in enumerate(value):
                yield from texts(item, (*path, index))
        case dict():
            for key, item in value.items():
                yield from texts(item, (*path, key))
        case _:
            pass


def uses(value: Json, path: Path = ()) -> Iterator[Use]:
    """List the variables that a value needs."""
    for place, text in texts(value, path):
        parts = parse_template(text)
        for part in parts:
            if isinstance(part, Variable):
                yield Use(part.name, place, is_whole_value=len(parts) == 1)


def is_templated(text: str) -> bool:
    """Whether a text has a variable in it."""
    return any(isinstance(part, Variable) for part in parse_template(text))


def compiled(value: Json) -> Resolver:
    """Read every template in a value once, nested ones included, to replace them by what variables hold in a scope."""
    match value:
        case str():
            return _compiled_text(value)
        case list():
            items = [compiled(item) for item in value]
            return lambda scope: [resolve(scope) for resolve in items]
        case dict():
            fields = [(key, compiled(item)) for key, item in value.items()]
            return lambda scope: {key: resolve(scope) for key, resolve in fields}
        case _:
            return lambda _: value


def _compiled_text(text: str) -> Resolver:
    match parse_template(text):
        case (Variable(name),):
            return itemgetter(name)
        case parts if not any(isinstance(part, Variable) for part in parts):
            return lambda _: text
        case parts:
            return lambda scope: "".join(
                [part if isinstance(part, str) else _as_text(part.name, scope) for part in parts]
            )


def _as_text(name: str, scope: Scope) -> str:
    match scope[name]:
        case str() as text:
            return text
        case bool() | int() | float() as value:
            return orjson.dumps(value).decode()
        case None:
            raise NotText(name, "null")
        case list():
            raise NotText(name, "a list")
        case dict():
            raise NotText(name, "a mapping")


def _plain(text: str) -> str:
    if "}}" in text:
        raise TemplateSyntaxProblem("'}}' has no '{{' before it")
    return text


def _variable_name(between: str) -> str:
    name = between.strip()
    if not name:
        raise TemplateSyntaxProblem("'{{}}' names no variable")
    if "{" in name or "}" in name or "\n" in name:
        raise TemplateSyntaxProblem("what stands between '{{' and '}}' has braces or a line break in it")
    return name
