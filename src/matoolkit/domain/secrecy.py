"""Which parameters are secret, and a dead job without its secrets (rule W8)."""

from collections.abc import Collection, Iterable, Iterator, Mapping

import orjson

from matoolkit.domain.masking import MASK
from matoolkit.runbook.catalogue import BUILT_IN, Function, Parameter
from matoolkit.runbook.secrecy import ALWAYS_SECRET, REFERENCE, SecretParameters, secret_parameters
from matoolkit.runbook.templates import Json


def known_secrets(announced: Iterable[tuple[str, str]]) -> SecretParameters:
    """Return what is secret in the built-in functions and in those that workers announced.

    An announcement is the function's name and its parameters as JSON; what cannot be read announces nothing secret.
    """
    functions = [Function(name, tuple(_secret_ones(parameters))) for name, parameters in announced]
    return secret_parameters([*BUILT_IN.values(), *functions])


def _secret_ones(parameters_json: str) -> Iterator[Parameter]:
    try:
        parameters = orjson.loads(parameters_json)
    except orjson.JSONDecodeError:
        return
    for parameter in parameters if isinstance(parameters, list) else ():
        if isinstance(parameter, dict) and parameter.get("is_secret"):
            yield Parameter(str(parameter.get("name")), is_secret=True)


def row_without_secrets(row: Mapping[str, Json], secret: Collection[str]) -> dict[str, Json]:
    """Mask the values of columns with these folded names; an empty value stays empty."""
    return {name: MASK if value is not None and name.casefold() in secret else value for name, value in row.items()}


def job_without_secrets(body: str, known: SecretParameters, kept_json: str | None = None) -> str:
    """Mask the values of secret parameters, at any depth; what only names a secret stays, for it tells nothing.

    What its row keeps as a template is secret too, if the row still has the job's parameters.
    """
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body
    if not isinstance(document, dict):
        return body
    secret = ALWAYS_SECRET.union(*known.values())
    kept = orjson.loads(kept_json) if kept_json else None
    masked = {
        name: _masked(value, kept, secret, is_secret=False) if name.casefold() == "parameters" else value
        for name, value in document.items()
    }
    return body if masked == document else orjson.dumps(masked).decode()


def _masked(value: Json, kept: Json, secret: Collection[str], *, is_secret: bool) -> Json:
    if isinstance(kept, str) and "{{" in kept and kept != value:
        is_secret = True
    match value:
        case dict():
            below = kept if isinstance(kept, dict) else {}
            return {
                name: _masked(item, below.get(name), secret, is_secret=is_secret or name.casefold() in secret)
                for name, item in value.items()
            }
        case list():
            beside = kept if isinstance(kept, list) and len(kept) == len(value) else [None] * len(value)
            pairs = zip(value, beside, strict=True)
            return [_masked(item, known, secret, is_secret=is_secret) for item, known in pairs]
        case str() if value.startswith(REFERENCE):
            return value
        case None:
            return None
        case _:
            return MASK if is_secret else value
