"""`secret:NAME` in a job's parameters becomes the secret, here and nowhere else (rule W8).

Only what is meant to be secret is looked up: a parameter that its function marks as such, and a `Password` at any
depth. A reference anywhere else would write a secret where everybody can read it.
"""

import re
from collections.abc import Callable, Collection, Mapping

from matoolkit.domain.masking import texts_in
from matoolkit.records import record
from matoolkit.runbook.secrecy import REFERENCE
from matoolkit.runbook.templates import Json
from matoolkit.worker.failures import InvalidParameters

_REFERENCE = re.compile(rf"{REFERENCE}\s*([A-Za-z0-9_.-]{{1,127}})\s*")


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
    return {name: resolver.value(value, name, is_secret=False) for name, value in given.items()}


@record
class _Resolver:
    function: str
    secret_names: Collection[str]
    look_up: Callable[[str], str]
    secrets: set[str]

    def value(self, value: Json, key: str, *, is_secret: bool) -> Json:
        is_secret = is_secret or key.casefold() in self.secret_names
        match value:
            case dict():
                return {name: self.value(item, name, is_secret=is_secret) for name, item in value.items()}
            case list():
                return [self.value(item, key, is_secret=is_secret) for item in value]
            case str() if value.startswith(REFERENCE):
                value = self._referred(value, key, is_secret=is_secret)
            case _:
                pass
        if is_secret:
            self.secrets.update(filter(None, texts_in(value)))
        return value

    def _referred(self, text: str, key: str, *, is_secret: bool) -> str:
        reference = _REFERENCE.fullmatch(text)
        if reference is None:
            return text
        if not is_secret:
            problem = f"{key} is not a secret parameter, and a secret is fetched only into a secret parameter"
            raise InvalidParameters(self.function, [problem])
        return self.look_up(reference[1])
