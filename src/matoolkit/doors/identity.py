"""Who asks (rule A2): an identity with its role, and without Entra anybody on this machine."""

from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request

from matoolkit.domain.signoff import Caller, Signer
from matoolkit.errors import RoleMissing
from matoolkit.loopback import require_from_here

ADMIN_ROLE = "Admin"
# Pauses, resumes, opens gates and lets work try again, and changes nothing else (rule G11).
OPERATOR_ROLE = "Operator"
# Signs off, and does nothing else.
APPROVER_ROLE = "Approver"
ROLES = frozenset({ADMIN_ROLE, OPERATOR_ROLE, APPROVER_ROLE})


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller, whether it may make changes, and the roles that it has; an administrator has all of them."""

    name: str
    is_admin: bool
    roles: frozenset[str] = frozenset()
    caller: Caller = Caller.PERSON
    other_names: frozenset[str] = frozenset()

    @property
    def signer(self) -> Signer:
        """The caller as somebody who wants to sign off; an administrator is an approver too."""
        roles = self.roles | ROLES if self.is_admin else self.roles
        return Signer(self.name, roles, self.caller, self.other_names)

    def has(self, role: str) -> bool:
        """Tell whether the caller has a role."""
        return self.is_admin or role in self.roles

    def require(self, role: str) -> None:
        """Refuse a caller without a role."""
        if not self.has(role):
            raise RoleMissing(role)

    def require_admin(self) -> None:
        """Refuse a caller without the role."""
        self.require(ADMIN_ROLE)


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
        return Identity("local", is_admin=True, caller=Caller.NOBODY)
