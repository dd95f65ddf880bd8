"""`secret:NAME` in a job's parameters becomes the secret, here and nowhere else (rule W8).

Only what is meant to be secret is looked up: a parameter that its function marks as such, and a `Password` at any
depth. Anything else may come from a column that people fill in themselves, and must not fetch a secret into a display
name.
"""

import re
from collections.abc import Callable, Collection, Mapping

from matoolkit.records import record
from matoolkit.runbook.templates import Json
from matoolkit.worker.failures import InvalidParameters

_REFERENCE = re.compile(r"secret:\s*([A-Za-z0-9_.-]{1,127})\s*")
_ALWAYS_SECRET = frozenset({"password"})


@record
class Resolved:
    """A job's parameters with their secrets, and which values those are."""

    parameters: dict[str, Json]
    secrets: set[str]


def resolved(
    function: str, given: Mapping[str, Json], secret_names: Collection[str], look_up: Callable[[str], str]
) -> Resolved:
    """Look up the secrets that parameters refer to; a clear value in a secret place is a secret too.

    The names of parameters that are secret are folded.
    """
    resolver = _Resolver(function, secret_names, look_up, set())
    return Resolved({name: resolver.value(value, name) for name, value in given.items()}, resolver.secrets)


@record
class _Resolver:
    function: str
    secret_names: Collection[str]
    look_up: Callable[[str], str]
    secrets: set[str]

    def value(self, value: Json, key: str) -> Json:
        match value:
            case str():
                return self._text(value, key)
            case list():
                return [self.value(item, key) for item in value]
            case dict():
                return {name: self.value(item, name) for name, item in value.items()}
            case _:
                return value

    def _text(self, text: str, key: str) -> str:
        reference = _REFERENCE.fullmatch(text) if text.startswith("secret:") else None
        folded = key.casefold()
        if folded not in self.secret_names and folded not in _ALWAYS_SECRET:
            if reference is not None:
                raise InvalidParameters(
                    self.function, [f"{key} is no secret parameter, and a secret is fetched only into one that is"]
                )
            return text
        secret = self.look_up(reference[1]) if reference is not None else text
        if secret:
            self.secrets.add(secret)
        return secret
