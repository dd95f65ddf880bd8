"""Pydantic's errors in the words of a runbook's author."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from matoolkit.errors import Finding, did_you_mean
from matoolkit.runbook.findings import finding_at
from matoolkit.runbook.model import Runbook
from matoolkit.runbook.parts import Part, keys_of
from matoolkit.runbook.suggestions import Suggestions
from matoolkit.runbook.templates import Path
from matoolkit.runbook.tree import Node
from matoolkit.runbook.values import kind_of

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}


def explained(root: Node, error: ErrorDetails, suggestions: Suggestions) -> Finding:
    """Turn an error of pydantic into a finding."""
    kind, path = error["type"], error["loc"]
    if path and path[-1] == "[key]":
        said = error["ctx"]["message"]
        message = said if said.startswith("'") else f"a name in {_label(path[:-2])} {said}"
        return finding_at(root, kind, path[:-1], message, error["ctx"]["hint"], key=True)
    if kind.startswith("RB"):
        return finding_at(root, kind, path, _sentence(path, error["ctx"]["message"]), error["ctx"]["hint"])
    if kind == "extra_forbidden":
        return _unknown_key(root, path, suggestions)
    return _EXPLANATIONS.get(kind, _other)(root, path, error)


def _unknown_key(root: Node, path: Path, suggestions: Suggestions) -> Finding:
    model = model_at(path[:-1])
    known = list(keys_of(model)) if model else []
    hint = suggestions.hint(str(path[-1]), known) or f"known here: {', '.join(known)}"
    return finding_at(root, "RB101", path, f"unknown key '{path[-1]}'", hint, key=True)


def _missing_key(root: Node, path: Path, _: ErrorDetails) -> Finding:
    return finding_at(root, "RB102", path[:-1], f"{_label(path[:-1])} has no '{path[-1]}'", f"add '{path[-1]}:' to it")


def _empty(root: Node, path: Path, _: ErrorDetails) -> Finding:
    return finding_at(root, "RB108", path, f"{_label(path)} is empty; it needs at least one item")


def _not_one_of(root: Node, path: Path, error: ErrorDetails) -> Finding:
    allowed = str(error["ctx"]["expected"]).replace("'", "")
    hint = did_you_mean(str(error["input"]), allowed.replace(" or ", ", ").split(", "))
    return finding_at(root, "RB104", path, f"{_label(path)} must be {allowed}", hint)


def _out_of_range(root: Node, path: Path, error: ErrorDetails) -> Finding:
    message = str(error["msg"]).removeprefix("Input should be ")
    return finding_at(root, "RB109", path, f"{_label(path)} is {error['input']}; it must be {message}")


def _other(root: Node, path: Path, error: ErrorDetails) -> Finding:
    if expected := _EXPECTED.get(error["type"]):
        found = kind_of(error["input"])
        if found == "nothing":
            return finding_at(root, "RB108", path, f"{_label(path)} has no value", "give it one, or remove the key")
        hint = "begin each item with '- '" if expected == "a list" else None
        return finding_at(root, "RB103", path, f"{_label(path)}: expected {expected}, found {found}", hint)
    return finding_at(root, "RB103", path, f"{_label(path)}: {error['msg']}")


_EXPLANATIONS: dict[str, Callable[[Node, Path, ErrorDetails], Finding]] = {
    "missing": _missing_key,
    "too_short": _empty,
    "literal_error": _not_one_of,
    "greater_than_equal": _out_of_range,
    "less_than_equal": _out_of_range,
}


def _sentence(path: Path, message: str) -> str:
    is_whole = message.startswith(("'", "expected"))
    return f"{_label(path)}: {message}" if is_whole else f"{_label(path)} {message}"


def _label(path: Path) -> str:
    """Name a place for a person: the nearest key, or the position in the nearest list."""
    match path:
        case ():
            return "the runbook"
        case (*_, str(key)):
            return f"'{key}'"
        case (*_, str(key), int(index)):
            return f"item {index + 1} of '{key}'"
        case _:
            return f"item {path[-1]}"


def model_at(path: Path) -> type[BaseModel] | None:
    """Return the model whose keys are expected at a path, if the keys there are fixed."""
    return _model_at(tuple(0 if isinstance(part, int) else part for part in path))


@lru_cache(maxsize=1024)
def _model_at(path: Path) -> type[BaseModel] | None:
    annotation: Any = Runbook
    for part in path:
        if isinstance(annotation, type) and issubclass(annotation, Part):
            info = keys_of(annotation).get(str(part))
            annotation = info.annotation if info else None
        else:
            annotation = _item_of(annotation)
        annotation = _bare(annotation)
    return annotation if isinstance(annotation, type) and issubclass(annotation, Part) else None


def _bare(annotation: Any) -> Any:
    """Take `Annotated` and `| None` off."""
    while hasattr(annotation, "__metadata__"):
        annotation = annotation.__origin__
    alternatives = [inner for inner in get_args(annotation) if inner is not type(None)]
    is_optional = len(alternatives) == 1 and type(None) in get_args(annotation)
    return _bare(alternatives[0]) if is_optional else annotation


def _item_of(annotation: Any) -> Any:
    """Return what a list or a mapping with free keys holds."""
    inner = [argument for argument in get_args(annotation) if argument is not Ellipsis]
    return inner[-1] if inner else None
