"""A request as the tenant sees it, and what goes back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass(frozen=True, slots=True)
class Request:
    """A call; `segments` are the parts of its path, decoded one by one."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None

    @property
    def segments(self) -> tuple[str, ...]:
        """The path in its parts. An encoded slash stays inside its part, as it must for an id."""
        return tuple(unquote(part) for part in urlsplit(self.target).path.strip("/").split("/"))

    @property
    def query(self) -> dict[str, str]:
        """The query's parameters."""
        return dict(parse_qsl(urlsplit(self.target).query))

    @property
    def label(self) -> str:
        """What the call is known by, to faults and in the list of calls: method, path and, for Exchange, the cmdlet."""
        return " ".join(filter(None, (self.method, urlsplit(self.target).path, self.cmdlet)))

    @property
    def cmdlet(self) -> str:
        """The cmdlet that an Exchange call names."""
        match self.body:
            case {"CmdletInput": {"CmdletName": str(name)}}:
                return name
        return ""

    def header(self, name: str) -> str:
        """Return a header, whatever the case of its name; nothing if it is not there."""
        return next((value for key, value in self.headers.items() if key.casefold() == name.casefold()), "")


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back. Bytes are sent as they are, `is_reset` breaks the connection instead."""

    status: int = HTTPStatus.OK
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_reset: bool = False


class Refusal(Exception):
    """The call is answered with an error."""

    def __init__(self, status: int, code: str, message: str, details: tuple[Mapping[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.details = details
