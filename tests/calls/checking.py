"""Compares calls and answers with the contract: an extract of what Graph, Exchange and Databricks really know.

A problem is a sentence. A call that the contract does not know may still be right: then `wanted.py` lacks it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

CONTRACT = Path(__file__).with_name("contract.json")
EXTEND = "if it exists, add it to tests/calls/wanted.py and run python -m tests.calls.extract"

_GUID = re.compile(r"\{?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\}?", re.IGNORECASE)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?")


@cache
def contract() -> Any:
    """Read the contract, once."""
    return json.loads(CONTRACT.read_text(encoding="utf-8"))


class HttpApi:
    """The part of the contract that is about an API with paths, bodies and types: Graph, or Databricks."""

    def __init__(self, name: str) -> None:
        self._known = contract()[name]
        self._types: dict[str, dict[str, str]] = self._known["types"]

    def problems(self, method: str, target: str, body: Any, status: int, answer: Any) -> Iterator[str]:
        """Say what is wrong with a call, or with the answer to it if that is no error."""
        label = f"{method} {urlsplit(target).path}"
        call = self._call(method, target)
        if call is None:
            yield f"{label}: the contract has no such call; {EXTEND}"
            return
        query = dict(parse_qsl(urlsplit(target).query, keep_blank_values=True))
        selected = query.get("$select", "").split(",") if query.get("$select") else []
        found = [
            *(f"the query option {name} does not exist" for name in query if name not in call.get("query", ())),
            *self._unselectable(call, selected),
            *self._body(call, body),
        ]
        if 200 <= status < 300 and isinstance(answer, dict):
            found += (f"in the answer {one}" for one in self._answer(call, answer, selected))
        yield from (f"{label}: {one}; {EXTEND}" for one in found)

    def _call(self, method: str, target: str) -> Any:
        segments = [unquote(one) for one in urlsplit(target).path.split("/")]
        for known, call in self._known["calls"].items():
            verb, _, path = known.partition(" ")
            if verb == method and _fits(path.split("/"), segments):
                return call
        return None

    def _unselectable(self, call: Mapping[str, Any], selected: list[str]) -> Iterator[str]:
        known = self._item(call.get("answer", ""))
        return (
            f"{name} cannot be selected: {known} has no such property"
            for name in selected
            if not self._has(known, name)
        )

    def _body(self, call: Mapping[str, Any], body: Any) -> Iterator[str]:
        if "body" not in call:
            if body:
                yield "the call takes no body"
        elif not isinstance(body, dict):
            yield "the call needs a body, an object"
        else:
            yield from self._object(call["body"], body, "")

    def _answer(self, call: Mapping[str, Any], answer: dict[str, Any], selected: list[str]) -> Iterator[str]:
        if "answer" not in call:
            if answer:
                yield "there is a body, and the call returns none"
            return
        yield from self._object(call["answer"], answer, "")
        shown = selected or self._known.get("defaults", {}).get(self._item(call["answer"]), ())
        why = "nobody selected it" if selected else "it is not among the default properties"
        is_list = self._item(call["answer"]) != call["answer"]
        for name in (name for one in (answer.get("value") or () if is_list else (answer,)) for name in one):
            if shown and name not in {*shown, "id"} and not name.startswith("@"):
                yield f"there is {name}, and {why}"

    def _object(self, kind: str, value: dict[str, Any], place: str) -> Iterator[str]:
        # An answer that is some directory object says itself what it is.
        kind = self._said(value) or kind
        # Graph reads the parameters of an action in any case, and its own pages write them in another than its schema.
        known = {_folded(kind, name): type_ for name, type_ in self._types[kind].items()}
        for name, inner in value.items():
            if name.startswith("@") and name not in known:
                continue
            type_ = known.get(_folded(kind, name))
            if type_ is None:
                yield f"{place}{name} does not exist: {kind} has no such property"
            elif inner is not None:
                yield from self._value(type_, inner, f"{place}{name}")

    def _value(self, type_: str, value: Any, place: str) -> Iterator[str]:
        if type_.startswith("["):
            if not isinstance(value, list):
                yield f"{place} is not a list"
                return
            for one in value:
                yield from self._value(type_[1:-1], one, f"{place}[]") if one is not None else ()
        elif type_ in self._types:
            yield from (
                self._object(type_, value, f"{place}.") if isinstance(value, dict) else (f"{place} is no object",)
            )
        elif type_ in self._known["enums"]:
            if value not in self._known["enums"][type_]:
                yield f"{place} is {value!r}, which {type_} does not have"
        elif not _is_primitive(type_, value):
            yield f"{place} is no {type_}"

    def _said(self, value: Mapping[str, Any]) -> str | None:
        said = str(value.get("@odata.type", "")).rpartition(".")[2]
        return next((name for name in self._types if name.casefold() == said.casefold()), None)

    def _item(self, kind: str) -> str:
        """Return the type of what a list is a list of; other types as they are."""
        return self._types.get(kind, {}).get("value", kind).strip("[]") if kind.endswith("CollectionResponse") else kind

    def _has(self, kind: str, name: str) -> bool:
        # What is selected of directory objects depends on which kind they are.
        kinds = ("User", "Group", "ServicePrincipal", kind) if kind == "DirectoryObject" else (kind,)
        return any(name.partition("/")[0] in self._types.get(one, {}) for one in kinds)


def exchange_problems(method: str, target: str, body: Any, status: int, answer: Any) -> Iterator[str]:
    """Say what is wrong with a cmdlet that is run, or with what it returns if that is no error."""
    match method, urlsplit(target).path.strip("/").split("/"), body:
        case (
            "POST",
            ["adminapi", "beta", str(), "InvokeCommand"],
            {"CmdletInput": {"CmdletName": str(name), "Parameters": dict(given), **more}, **rest},
        ) if not more and not rest:
            pass
        case _:
            yield f"{method} {urlsplit(target).path}: this is no InvokeCommand as Exchange knows it"
            return
    cmdlets = contract()["exchange"]["cmdlets"]
    if name not in cmdlets:
        yield f"{name}: the contract has no such cmdlet in Exchange Online; {EXTEND}"
        return
    found = [*_parameters(cmdlets[name], given), *_sets(cmdlets[name], given)]
    if 200 <= status < 300 and isinstance(answer, dict):
        found += _rows(name, answer)
    yield from (f"{name}: {one}; {EXTEND}" for one in found)


def _parameters(known: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        if name not in known:
            yield f"there is no parameter {name}"
        elif not _is_parameter(_type(known[name]), value):
            yield f"{name} is no {_type(known[name])}"


def _sets(known: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[str]:
    """Look for one set of parameters that has all that are given, and lacks none that it needs."""
    names = {one for parameter in known.values() for one in _sets_of(parameter)} - {"*"} or {"*"}
    fitting = [one for one in names if all(_in_set(known[name], one) for name in given if name in known)]
    if not fitting:
        yield f"no set of parameters has {', '.join(given)} together"
        return
    lacking = [[name for name in known if _is_needed(known[name], one) and name not in given] for one in fitting]
    if all(lacking):
        shortest: list[str] = min(lacking, key=len)
        yield f"it needs {', '.join(shortest)} too"


def _sets_of(parameter: Any) -> dict[str, bool]:
    return {"*": False} if isinstance(parameter, str) else dict(parameter["sets"])


def _in_set(parameter: Any, name: str) -> bool:
    return not {"*", name}.isdisjoint(_sets_of(parameter))


def _is_needed(parameter: Any, name: str) -> bool:
    sets = _sets_of(parameter)
    return sets.get(name, sets.get("*", False))


def _type(parameter: Any) -> str:
    return parameter if isinstance(parameter, str) else str(parameter["type"])


def _is_parameter(type_: str, value: Any) -> bool:
    match type_:
        case "Boolean" | "SwitchParameter":
            return isinstance(value, bool)
        case "Int32":
            return isinstance(value, int) and not isinstance(value, bool)
        case "Guid":
            return isinstance(value, str) and _GUID.fullmatch(value) is not None
        case "DateTime":
            return isinstance(value, str) and _MOMENT.fullmatch(value) is not None
        case "MultiValuedProperty" | "ProxyAddressCollection":
            return isinstance(value, str) or value is None or _is_texts(value) or _is_hash_table(value)
        case _ if type_.endswith("[]") and type_ != "Byte[]":
            return isinstance(value, str) or _is_texts(value)
        case "Unlimited":
            return isinstance(value, str | int) and not isinstance(value, bool)
        case _:
            # Null empties a property. Everything else is written as text: ids, addresses, names of a choice.
            return value is None or isinstance(value, str)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_hash_table(value: Any) -> bool:
    match value:
        case {"@odata.type": "#Exchange.GenericHashTable", **changes} if changes:
            return all(
                name in ("Add", "Remove") and (isinstance(one, str) or _is_texts(one)) for name, one in changes.items()
            )
    return False


def _rows(name: str, answer: Mapping[str, Any]) -> Iterator[str]:
    exchange = contract()["exchange"]
    known = exchange["answers"].get(exchange["answers like"].get(name, name), [])
    for row in answer.get("value") or ():
        for key in row:
            if key not in known and "@" not in key:
                yield f"in the answer {key} does not exist"


def _fits(template: list[str], segments: list[str]) -> bool:
    return len(template) == len(segments) and all(
        bool(segment) if known.startswith("{") else known == segment
        for known, segment in zip(template, segments, strict=True)
        if known or segment
    )


def _folded(kind: str, name: str) -> str:
    return name.casefold() if kind.endswith("PostRequestBody") else name


def _is_primitive(type_: str, value: Any) -> bool:
    match type_:
        case "Any":
            return True
        case "Boolean":
            return isinstance(value, bool)
        case "Int":
            return isinstance(value, int) and not isinstance(value, bool)
        case "Double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "Guid":
            return isinstance(value, str) and _GUID.fullmatch(value) is not None
        case "DateTime" | "Date":
            return isinstance(value, str) and _MOMENT.fullmatch(value) is not None
        case _:
            return isinstance(value, str)
