"""What may be kept of a job that nobody could do: all but its secrets (rule W8)."""

from collections.abc import Collection, Iterable, Iterator

import orjson

from matoolkit.runbook.templates import Json

MASK = "***"

_ALWAYS_SECRET = frozenset({"password"})
_REFERENCE = "secret:"


def secret_names(announced: Iterable[str]) -> frozenset[str]:
    """Return the names of all parameters that workers announced as secret; what cannot be read announces none."""
    return frozenset(name for parameters in announced for name in _secret_names_in(parameters))


def _secret_names_in(parameters_json: str) -> Iterator[str]:
    try:
        parameters = orjson.loads(parameters_json)
    except orjson.JSONDecodeError:
        return
    for parameter in parameters if isinstance(parameters, list) else ():
        if isinstance(parameter, dict) and parameter.get("is_secret"):
            yield str(parameter.get("name"))


def job_without_secrets(body: str, secret_names: Collection[str]) -> str:
    """Mask the values of secret parameters, at any depth; what only names a secret stays, for it tells nothing."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body
    if not isinstance(document, dict):
        return body
    secret = {name.casefold() for name in secret_names} | _ALWAYS_SECRET
    masked = {
        name: _masked(value, secret, is_secret=False) if name.casefold() == "parameters" else value
        for name, value in document.items()
    }
    return body if masked == document else orjson.dumps(masked).decode()


def _masked(value: Json, secret: Collection[str], *, is_secret: bool) -> Json:
    match value:
        case dict():
            return {
                name: _masked(item, secret, is_secret=is_secret or name.casefold() in secret)
                for name, item in value.items()
            }
        case list():
            return [_masked(item, secret, is_secret=is_secret) for item in value]
        case str() if value.startswith(_REFERENCE):
            return value
        case None:
            return None
        case _:
            return MASK if is_secret else value
