"""What may be kept of a job that nobody could do: all but its secrets (rule W8)."""

from collections.abc import Collection

import orjson

from matoolkit.runbook.templates import Json

MASK = "***"

_ALWAYS_SECRET = frozenset({"password"})
_REFERENCE = "secret:"


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
