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
# The folded names that are secret in every function.
ALWAYS_SECRET = frozenset({"password"})


def resolved(
    function: str,
    given: Mapping[str, Json],
    secret_names: Collection[str],
    look_up: Callable[[str], str],
    secrets: set[str],
) -> dict[str, Json]:
    """Look up the secrets that parameters refer to; a clear value in a secret place is a secret too.

    The names that are secret are folded. The values that are join `secrets`.
    """
    resolver = _Resolver(function, secret_names, look_up, secrets)
    return {name: resolver.value(value, name) for name, value in given.items()}


@record
class _Resolver:
    function: str
    secret_names: Collection[str]
    look_up: Callable[[str], str]
    secrets: set[str]

    def value(self, value: Json, key: str) -> Json:
        if isinstance(value, str):
            is_secret = key.casefold() in self.secret_names
            return self._text(value, key, is_secret) if is_secret or "secret:" in value else value
        if isinstance(value, dict):
            return {name: self.value(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, key) for item in value]
        return value

    def _text(self, text: str, key: str, is_secret: bool) -> str:
        reference = _REFERENCE.fullmatch(text)
        if not is_secret:
            if reference is not None:
                raise InvalidParameters(
                    self.function, [f"{key} is no secret parameter, and a secret is fetched only into one that is"]
                )
            return text
        secret = self.look_up(reference[1]) if reference is not None else text
        if secret:
            self.secrets.add(secret)
        return secret
