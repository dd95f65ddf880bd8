"""Sessions: who signed in, in a sealed cookie that ends at a fixed time. No token is in it, and none gets to a page."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from fastapi import Response
from starlette.requests import Request

from matoolkit.clock import Clock
from matoolkit.doors.identity import ROLES, Identity
from matoolkit.errors import PagesClosed, SessionOver
from matoolkit.web.keeping import Keeping

SESSION = "matoolkit-session"
# A browser keeps 4 kB of a cookie, and Entra's names are shorter than this.
_LONGEST_NAME = 256
_ROOM_FOR_ROLES = 800


@dataclass(frozen=True, slots=True)
class Session:
    """A person who signed in, and until when."""

    identity: Identity
    ends_at: datetime


class Sessions:
    """Knows people by the cookie that they got when they signed in, and by nothing else that a request may show."""

    def __init__(self, keeping: Keeping, clock: Clock, lasting: timedelta) -> None:
        self._keeping = keeping
        self._clock = clock
        self._lasting = lasting

    def identity(self, request: Request) -> Identity:
        """Return who sent a request, or refuse it."""
        return self.session(request).identity

    def session(self, request: Request) -> Session:
        """Return the session of a request, or refuse it."""
        found = self._keeping.found(request, SESSION)
        if found is None:
            has_ended = self._keeping.is_kept(request, SESSION)
            raise SessionOver("your session has ended" if has_ended else "nobody is signed in in this browser")
        identity = Identity(found["name"], found["admin"], frozenset(found.get("roles", ())))
        return Session(identity, datetime.fromtimestamp(found["until"], UTC))

    def is_on(self, request: Request) -> bool:
        """Tell whether somebody is signed in."""
        return self._keeping.found(request, SESSION) is not None

    def seconds_left(self, request: Request) -> float:
        """Return how long the session of a request goes on."""
        return (self.session(request).ends_at - self._clock.now()).total_seconds()

    def begin(self, response: Response, identity: Identity) -> Session:
        """Let the browser keep who signed in."""
        session = Session(identity, self._clock.now() + self._lasting)
        name = identity.name[:_LONGEST_NAME]
        content = {
            "name": name,
            "admin": identity.is_admin,
            "roles": _kept(identity.roles),
            "until": session.ends_at.timestamp(),
        }
        self._keeping.put(response, SESSION, content, self._lasting)
        return session

    def end(self, response: Response) -> None:
        """Let the browser forget who signed in."""
        self._keeping.forget(response, SESSION)


def _kept(roles: Collection[str]) -> list[str]:
    """Return the roles that find room in a cookie: those of our own first, then the shortest."""
    kept, room = [], _ROOM_FOR_ROLES
    for role in sorted(roles, key=lambda role: (role not in ROLES, len(role), role)):
        room -= len(role.encode())
        if room < 0:
            break
        kept.append(role)
    return kept


class Closed:
    """Lets nobody in, because nothing says where people would sign in."""

    def identity(self, request: Request) -> Identity:  # noqa: ARG002 - all are refused alike
        """Refuse everybody."""
        raise PagesClosed
