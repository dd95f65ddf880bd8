"""Whether an attribute is as expected: as text, whatever its case, as PowerShell compares."""

from collections.abc import Mapping
from typing import Any

from matoolkit.worker.failures import InvalidParameters


def check_expectation(function: str, expected: Any, *, is_multi_value: bool) -> None:
    """Refuse an expectation that could never be met."""
    if isinstance(expected, dict):
        raise InvalidParameters(function, ["ExpectedValue is a mapping, and no attribute is one"])
    if isinstance(expected, list) and not is_multi_value:
        raise InvalidParameters(function, ["ExpectedValue is a list, so IsMultiValue has to be true"])


def is_as_expected(current: Any, expected: Any, *, is_multi_value: bool) -> bool:
    """Compare a value; of several expected ones all have to be there, others may be too."""
    if not is_multi_value:
        return _text(current) == _text(expected)
    present = {_text(one) for one in _listed(current)}
    return all(_text(one) in present for one in _listed(expected))


def value_of(fields: Mapping[str, Any], name: str) -> Any:
    """Return a field, whatever the case of its name; nothing if it is not there."""
    return next((value for key, value in fields.items() if key.casefold() == name.casefold()), None)


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return str(int(value))
        case _:
            return str(value).strip().casefold()
