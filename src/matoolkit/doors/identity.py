"""Who asks (rule A2): an identity with its role, and without Entra anybody on this machine."""

from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request

from matoolkit.errors import RoleMissing
from matoolkit.loopback import require_from_here

ADMIN_ROLE = "Admin"


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller, and whether it may make changes."""

    name: str
    is_admin: bool

    def require_admin(self) -> None:
        """Refuse a caller without the role."""
        if not self.is_admin:
            raise RoleMissing(ADMIN_ROLE)


class SignIn(Protocol):
    """Tells who sent a request."""

    def identity(self, request: Request) -> Identity:
        """Return who sent a request, or refuse it."""


class LocalOnly:
    """Answers only this machine, and only web pages of its own address."""

    def identity(self, request: Request) -> Identity:
        """Return the one identity there is."""
        client = request.client.host if request.client else ""
        require_from_here(client, request.headers.get("host"), request.headers.get("origin"))
        return Identity("local", is_admin=True)
