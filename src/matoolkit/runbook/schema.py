"""The JSON Schema of the language, for editors: made from the model, in two dialects."""

from typing import Any, Literal, TypeAlias

from matoolkit.runbook.model import Runbook

Draft: TypeAlias = Literal["2020-12", "draft-07"]

_DIALECTS = {
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
    "draft-07": "http://json-schema.org/draft-07/schema#",
}


def json_schema(draft: Draft = "2020-12") -> dict[str, Any]:
    """Describe a runbook as far as a schema can; the linter checks what keys mean together."""
    schema: dict[str, Any] = {"$schema": _DIALECTS[draft], **_tidied(Runbook.model_json_schema())}
    return _as_draft_07(schema) if draft == "draft-07" else schema


def _tidied(node: Any) -> Any:
    """Drop what helps no author: generated titles, and null, which the language refuses."""
    match node:
        case dict():
            inner = {key: _tidied(value) for key, value in node.items() if not _is_noise(key, value)}
            return _without_null(inner)
        case list():
            return [_tidied(item) for item in node]
        case _:
            return node


def _is_noise(key: str, value: Any) -> bool:
    return (key == "title" and isinstance(value, str)) or (key == "default" and value in (None, [], {}, ()))


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    alternatives = node.get("anyOf", [])
    kept = [alternative for alternative in alternatives if alternative != {"type": "null"}]
    if len(kept) == len(alternatives):
        return node
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    return {**kept[0], **rest} if len(kept) == 1 else {**rest, "anyOf": kept}


def _as_draft_07(node: Any) -> Any:
    """Rename what has another name in draft 7; it also ignores all keys beside a `$ref`."""
    match node:
        case dict():
            inner = {_DRAFT_07_KEYS.get(key, key): _as_draft_07(value) for key, value in node.items()}
            reference = inner.pop("$ref", None)
            if reference is None:
                return inner
            target = {"$ref": reference.replace("#/$defs/", "#/definitions/")}
            return {**inner, "allOf": [target]} if inner else target
        case list():
            return [_as_draft_07(item) for item in node]
        case _:
            return node


_DRAFT_07_KEYS = {"$defs": "definitions"}
