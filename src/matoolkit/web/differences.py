"""What a change made of something: the values that differ, each before and after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

_MOST = 12


@dataclass(frozen=True, slots=True)
class Difference:
    """A value before and after a change; one that was not there, or is gone, is empty."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Differences:
    """The values that differ, and how many more there are."""

    shown: Sequence[Difference]
    more: int


def differences(before_json: str | None, after_json: str | None) -> Differences:
    """Compare two states that were kept as JSON, value by value."""
    before, after = _values(before_json), _values(after_json)
    # A state of before alone says what something was when it ended.
    names = [name for name in {**before, **after} if name not in after or before.get(name) != after[name]]
    found = [Difference(name, before.get(name), after.get(name)) for name in names]
    return Differences(found[:_MOST], max(0, len(found) - _MOST))


def _values(text: str | None) -> Mapping[str, str]:
    if text is None:
        return {}
    content = orjson.loads(text)
    if not isinstance(content, dict):
        return {"": _told(content)}
    return {name: _told(value) for name, value in content.items()}


def _told(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
