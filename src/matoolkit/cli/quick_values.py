"""Reads the plain values of options without pydantic, which takes longer to import than most commands take to run.

Typer reads every value with pydantic, even one that was not given. Here a text, a whole number within its limits and a
word of a list are read at once. Typer reads everything else, and all that is wrong, so its messages stay as they are.
No public name of Typer reaches how it reads values: if another version does it differently, it is slower, not wrong.
"""

from enum import Enum
from typing import Any

import typer.core

_MOST_DIGITS = 9
_NOT_PLAIN = object()


def read_quickly() -> None:
    """Let all commands read plain values at once."""
    core: Any = typer.core
    slowly = getattr(core, "build_runtime_param", None)
    if slowly is not None:
        core.build_runtime_param = lambda wanted: _Quickly(wanted, slowly)


class _Quickly:
    """How one option or argument is read."""

    def __init__(self, wanted: Any, slowly: Any) -> None:
        self._wanted = wanted
        self._slowly = slowly

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return what a value stands for."""
        plain = _plain(self._wanted, value, is_many=param.multiple or param.nargs != 1)
        return self._slowly(self._wanted).coerce(value, param=param, ctx=ctx) if plain is _NOT_PLAIN else plain


def _plain(wanted: Any, value: Any, *, is_many: bool) -> Any:
    if is_many:
        return () if value is None else _NOT_PLAIN
    if value is None:
        return None
    known, info = wanted.annotation, wanted.parameter_info
    if info.parser is not None or not isinstance(known, type):
        return _NOT_PLAIN
    if issubclass(known, Enum):
        return next((word for word in known if value in (word, word.value)), _NOT_PLAIN)
    if known is int:
        return _whole_number(value, info.min, info.max)
    return value if known is str and isinstance(value, str) else _NOT_PLAIN


def _whole_number(value: Any, least: float | None, most: float | None) -> Any:
    text = str(value)
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        return _NOT_PLAIN
    number = int(text)
    within = (least is None or number >= least) and (most is None or number <= most)
    return number if within else _NOT_PLAIN
