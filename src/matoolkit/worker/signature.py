"""Parameters of a function, read from its signature: names, types, which are mandatory, which are secret.

`new_user_principal_name: str` is the parameter `NewUserPrincipalName`. A parameter without default is mandatory.
"""

import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from matoolkit.domain.messages import AnnouncedParameter

_SECRET: Final = object()

Secret = Annotated[str, _SECRET]


class Kind(StrEnum):
    """What a parameter takes, under the name that is announced."""

    TEXT = "string"
    FLAG = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    LIST = "list"
    MAPPING = "mapping"
    ANYTHING = "any"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function: the name that jobs use, and the name in Python."""

    name: str
    python_name: str
    kinds: tuple[Kind, ...] = (Kind.TEXT,)
    is_mandatory: bool = False
    is_secret: bool = False
    takes_null: bool = False

    @property
    def type(self) -> str:
        """The type that is announced; one that takes several is announced as taking anything."""
        return self.kinds[0] if len(self.kinds) == 1 else Kind.ANYTHING

    def announced(self) -> AnnouncedParameter:
        """Return the parameter as the catalogue knows it."""
        return AnnouncedParameter(self.name, self.type, self.is_mandatory, self.is_secret)


# What JSON knows, and no other class: to Python a flag is a whole number, too.
KINDS_OF_JSON: Mapping[Any, Kind] = {
    str: Kind.TEXT,
    bool: Kind.FLAG,
    int: Kind.INTEGER,
    float: Kind.NUMBER,
    list: Kind.LIST,
    dict: Kind.MAPPING,
}
_KINDS = {**KINDS_OF_JSON, Any: Kind.ANYTHING, object: Kind.ANYTHING}


def parameters_of(call: Callable[..., Any]) -> tuple[Parameter, ...]:
    """Read the parameters of a Python function, all but the first, which is the context."""
    hints = get_type_hints(call, include_extras=True)
    declared = list(inspect.signature(call).parameters.values())
    if not declared:
        raise TypeError(f"{call.__name__} needs a context as its first parameter")
    return tuple(_parameter(one, hints) for one in declared[1:])


def job_name(python_name: str) -> str:
    """Return the name that jobs use for a Python name: `user_id` is `UserId`."""
    return "".join(word[:1].upper() + word[1:] for word in python_name.split("_"))


def _parameter(declared: inspect.Parameter, hints: Mapping[str, Any]) -> Parameter:
    if declared.kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
        raise TypeError(f"parameter {declared.name} has to be a plain one: jobs give parameters by name")
    if declared.name not in hints:
        raise TypeError(f"parameter {declared.name} needs a type")
    alternatives = _alternatives(hints[declared.name])
    kinds = dict.fromkeys(_kind(one, declared.name) for one in alternatives if one is not types.NoneType)
    return Parameter(
        name=job_name(declared.name),
        python_name=declared.name,
        kinds=tuple(kinds),
        is_mandatory=declared.default is inspect.Parameter.empty,
        is_secret=any(_SECRET in getattr(one, "__metadata__", ()) for one in alternatives),
        takes_null=types.NoneType in alternatives or Kind.ANYTHING in kinds,
    )


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _kind(hint: Any, name: str) -> Kind:
    plain = hint.__origin__ if hasattr(hint, "__metadata__") else hint
    kind = _KINDS.get(get_origin(plain) or plain)
    if kind is None:
        taken = "str, int, float, bool, list, dict, Any, Secret"
        raise TypeError(f"parameter {name} has a type that no job can hold; it has to be one of {taken}, or `| None`")
    return kind
