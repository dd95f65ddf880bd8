"""A job's parameters, checked against a function's and converted to its types.

Lenient where a template makes text of a value ("true", "5") or keeps a column's number; strict otherwise: a wrong value
is refused with words before anything is called, and the words never repeat a value, for it may be a secret.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matoolkit.errors import did_you_mean
from matoolkit.runbook.templates import Json
from matoolkit.worker.failures import InvalidParameters
from matoolkit.worker.signature import KINDS_OF_JSON, Kind, Parameter

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_FLAGS = {"true": True, "false": False}
_WORDS = {
    Kind.TEXT: "text",
    Kind.FLAG: "true or false",
    Kind.INTEGER: "a whole number",
    Kind.NUMBER: "a number",
    Kind.LIST: "a list",
    Kind.MAPPING: "a mapping",
}


class _Unfit(Exception):
    """A value is not of the kind."""


def arguments(function: str, known: Mapping[str, Parameter], given: Mapping[str, Json]) -> dict[str, Any]:
    """Return the arguments of a call by their Python names; everything that is wrong is said in one failure.

    The function's parameters are known by their folded names.
    """
    problems: list[str] = []
    converted: dict[str, Any] = {}
    for name, value in given.items():
        parameter = known.get(name.casefold())
        if parameter is None:
            problems.append(_unknown(name, known.values()))
        elif parameter.python_name in converted:
            problems.append(f"{parameter.name} is given twice")
        elif value is not None:
            try:
                converted[parameter.python_name] = _fitting(parameter.kinds, value)
            except _Unfit:
                problems.append(_unfit(parameter, value))
        elif parameter.takes_null:
            converted[parameter.python_name] = None
    problems += [
        _missing(one, given)
        for one in known.values()
        if one.is_mandatory and one.python_name not in converted and _is_absent(one, given)
    ]
    if problems:
        raise InvalidParameters(function, problems)
    return converted


def _is_absent(parameter: Parameter, given: Mapping[str, Json]) -> bool:
    values = [value for name, value in given.items() if name.casefold() == parameter.name.casefold()]
    return not values or (values == [None] and not parameter.takes_null)


def _missing(parameter: Parameter, given: Mapping[str, Json]) -> str:
    is_null = any(name.casefold() == parameter.name.casefold() for name in given)
    return f"{parameter.name} is null, and it is mandatory" if is_null else f"{parameter.name} is missing"


def _unknown(name: str, parameters: Iterable[Parameter]) -> str:
    hint = did_you_mean(name, [one.name for one in parameters])
    return f"there is no parameter {name[:100]!r}" + (f", {hint}" if hint else "")


def _unfit(parameter: Parameter, value: Json) -> str:
    wanted = " or ".join(_WORDS[kind] for kind in parameter.kinds)
    return f"{parameter.name} has to be {wanted}, and is {_described(value)}"


def _fitting(kinds: Sequence[Kind], value: Json) -> Any:
    """Return the value as it is if a kind takes that, else as the first kind that it can be converted to."""
    if KINDS_OF_JSON[type(value)] in kinds or Kind.ANYTHING in kinds:
        return value
    for kind in kinds:
        try:
            return _converted(kind, value)
        except _Unfit:
            continue
    raise _Unfit


def _converted(kind: Kind, value: Json) -> Any:
    match kind, value:
        case Kind.TEXT, bool():
            return "true" if value else "false"
        case Kind.TEXT, int() | float():
            return str(value)
        case Kind.FLAG, str() if value.strip().casefold() in _FLAGS:
            return _FLAGS[value.strip().casefold()]
        case Kind.INTEGER, str() if _INTEGER.fullmatch(value.strip()):
            return int(value)
        case Kind.INTEGER, float() if value.is_integer():
            return int(value)
        case Kind.NUMBER, bool():
            raise _Unfit
        case Kind.NUMBER, int():
            return float(value)
        case Kind.NUMBER, str() if _NUMBER.fullmatch(value.strip()) and math.isfinite(float(value)):
            return float(value)
        case _:
            raise _Unfit


def _described(value: Json) -> str:
    match value:
        case bool():
            return "true or false"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case _:
            return "a mapping"
