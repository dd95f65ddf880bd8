"""The settings of the command line: from an option, else the environment, else `~/.matoolkit/config.json` (rule A3)."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from matoolkit.cli.files import write_privately
from matoolkit.client_settings import PREFIX, VARIABLES, ClientSettings, read_client_settings
from matoolkit.errors import InvalidSettings, did_you_mean

_VARIABLES = {field.replace("_", "-"): name for field, name in VARIABLES.items()}
_TOKEN = "access-token"  # noqa: S105 - its name
KEYS = tuple(key for key in _VARIABLES if key != _TOKEN)
_MOST_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Told:
    """A setting, its value as it may be shown, and where it comes from."""

    key: str
    value: str | None
    source: str


def own_folder() -> Path:
    """Return the folder in which the command line keeps what is its own."""
    try:
        return Path.home() / ".matoolkit"
    except RuntimeError:
        raise InvalidSettings(["your home folder is not known"], hint="set HOME") from None


def config_path() -> Path:
    """Return where the configuration file is, or would be."""
    return own_folder() / "config.json"


def client_settings(api_url: str | None = None, environ: Mapping[str, str] = os.environ) -> ClientSettings:
    """Return the settings of this call."""
    told = {_VARIABLES[key]: value for key, value in _read().items()}
    given = {name: value for name, value in environ.items() if value}
    option = {_VARIABLES["api-url"]: api_url} if api_url else {}
    strangers, hint = _strangers(given)
    settings, problems = read_client_settings({**told, **given, **option})
    if strangers or problems:
        # The settings know only variables, but the error names the file if the value is there.
        in_file = {_VARIABLES[key]: f"{key} in {config_path()}" for key in KEYS if _VARIABLES[key] in told}
        places = {**in_file, **{name: name for name in given}, **dict.fromkeys(option, "--api-url")}
        raise InvalidSettings([_at_its_place(problem, places) for problem in [*strangers, *problems]], hint=hint)
    return settings


def everything_told(api_url: str | None = None, environ: Mapping[str, str] = os.environ) -> list[Told]:
    """Return every setting with its source; a wrong setting raises an error instead."""
    settings = client_settings(api_url, environ)
    written = _read()
    return [_told(settings, key, written, environ, api_url) for key in _VARIABLES]


def tell(key: str, value: str) -> Path:
    """Write a setting into the file, if it can be used."""
    known = key.replace("_", "-").casefold()
    if known == _TOKEN:
        hint = f"set {_VARIABLES[_TOKEN]} where it is needed, or sign in with `matoolkit auth login`"
        raise InvalidSettings(["a token is not kept in the configuration"], hint=hint)
    _require_known(known, "")
    _, problems = read_client_settings({_VARIABLES[known]: value})
    if problems:
        raise InvalidSettings(problems)
    path = config_path()
    kept = {name: old for name, old in _read().items() if name != known}
    write_privately(path, orjson.dumps({**kept, **({known: value} if value else {})}, option=orjson.OPT_INDENT_2))
    return path


def _strangers(environ: Mapping[str, str]) -> tuple[list[str], str | None]:
    """Return what is wrong with names that begin like settings and are none of ours."""
    if not any(name.startswith(PREFIX) and name not in VARIABLES.values() for name in environ):
        return [], None
    from matoolkit.settings import unknown_names

    return unknown_names(environ)


def _told(
    settings: ClientSettings, key: str, written: Mapping[str, str], environ: Mapping[str, str], api_url: str | None
) -> Told:
    field = key.replace("-", "_")
    value = getattr(settings, field)
    shown = None if value is None else "(set, not shown)" if key == _TOKEN else _in_words(value)
    if key == "api-url" and api_url:
        return Told(key, shown, "--api-url")
    if environ.get(_VARIABLES[key]):
        return Told(key, shown, _VARIABLES[key])
    if key in written:
        return Told(key, shown, str(config_path()))
    return Told(key, shown, "default" if value is not None else "not set")


def _at_its_place(problem: str, places: Mapping[str, str]) -> str:
    name, blank, rest = problem.partition(" ")
    return f"{places.get(name, name)}{blank}{rest}"


def _in_words(value: Any) -> str:
    from datetime import timedelta

    from matoolkit.duration import format_duration

    return format_duration(value) if isinstance(value, timedelta) else str(value)


def _read() -> dict[str, str]:
    try:
        path = config_path()
    except InvalidSettings:
        return {}
    try:
        with path.open("rb") as opened:
            content = orjson.loads(opened.read(_MOST_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as fault:
        raise InvalidSettings([f"{path} cannot be read: {(fault.strerror or str(fault)).lower()}"]) from None
    except orjson.JSONDecodeError:
        raise InvalidSettings([f"{path} is not JSON"], hint="fix it or delete it") from None
    if not isinstance(content, dict) or not all(isinstance(value, str) for value in content.values()):
        raise InvalidSettings([f"{path} should be a JSON object whose values are texts"])
    for key in content:
        _require_known(key, f" in {path}")
    return content


def _require_known(key: str, where: str) -> None:
    if key not in KEYS:
        hint = did_you_mean(key, KEYS) or f"there are {', '.join(KEYS)}"
        raise InvalidSettings([f"'{key}'{where} is not a setting"], hint=hint)
