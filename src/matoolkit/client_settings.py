"""The settings of the command line when it talks to an admin API.

They are read without pydantic, which takes longer to import than most commands take to run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, ClassVar
from urllib.parse import urlsplit

from matoolkit.clouds import CLOUDS, PUBLIC, CloudName
from matoolkit.duration import parse_duration

PREFIX = "MATOOLKIT_"
_MINUTE = timedelta(minutes=1)


def address(value: str) -> str:
    """Return an address in the spelling that other code expects."""
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018 - looks whether it is a number
    except ValueError:
        raise ValueError("should be an address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or "@" in value:
        raise ValueError("should be an address that begins with https:// or http://, without a name or a query in it")
    # Other code looks at the scheme, so it has one spelling.
    return parts.geturl().rstrip("/")


def duration(value: str) -> timedelta:
    """Return a duration that is longer than nothing."""
    found = parse_duration(value)
    if not found:
        raise ValueError("is no time at all: write a duration longer than zero")
    return found


def known_cloud(value: str) -> CloudName:
    """Return the name of a cloud that there is."""
    *first, last = CLOUDS
    for name in CLOUDS:
        if name == value:
            return name
    raise ValueError(f"should be {', '.join(map(repr, first))} or {last!r}")


def _zone(value: str) -> str:
    if value not in ("utc", "local"):
        raise ValueError("should be 'utc' or 'local'")
    return value


def _setting(default: Any, description: str, read: Callable[[str], Any] = str, *, is_shown: bool = True) -> Any:
    return field(default=default, repr=is_shown, metadata={"description": description, "read": read})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Settings of the command line when it talks to an admin API."""

    prefix: ClassVar[str] = PREFIX

    api_url: str = _setting("http://127.0.0.1:8080", "Address of the admin API.", address)
    tenant_id: str | None = _setting(None, "Entra tenant in which people sign in.")
    client_id: str | None = _setting(None, "Application id of the command line in that tenant.")
    api_scope: str | None = _setting(
        None,
        "Scope to ask a token for: `{client-id}/.default`, which is the default, or `api://{client-id}/.default`.",
    )
    cloud: CloudName = _setting(PUBLIC.name, "Microsoft's cloud in which people sign in.", known_cloud)  # noqa: RUF009
    authority: str = _setting(
        PUBLIC.authority, "Where people sign in; when not given, where `MATOOLKIT_CLOUD` says.", address
    )
    api_timeout: timedelta = _setting(_MINUTE, "How long the admin API may take to answer.", duration)  # noqa: RUF009
    times: str = _setting("utc", "Whether times are told in `utc` or in the `local` zone of the machine.", _zone)
    access_token: str | None = _setting(None, "A token to use as it is, for pipelines.", is_shown=False)


# The environment variable of each setting.
VARIABLES = {one.name: f"{PREFIX}{one.name}".upper() for one in fields(ClientSettings)}


def read_client_settings(environ: Mapping[str, str]) -> tuple[ClientSettings, list[str]]:
    """Return the settings, and what is wrong with those that cannot be read; an empty variable counts as not set."""
    read: dict[str, Any] = {}
    problems: list[str] = []
    for one in fields(ClientSettings):
        given = environ.get(VARIABLES[one.name])
        try:
            if given:
                read[one.name] = one.metadata["read"](given)
        except ValueError as wrong:
            problems.append(f"{VARIABLES[one.name]} {wrong}")
    of_cloud = {"authority": CLOUDS[read.get("cloud", PUBLIC.name)].authority}
    return ClientSettings(**(of_cloud | read)), problems
