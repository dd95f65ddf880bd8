"""How the routes get at what they work with, and who may use them."""

from typing import Annotated

from fastapi import Depends, Request

from matoolkit.doors.identity import APPROVER_ROLE, OPERATOR_ROLE, Identity
from matoolkit.doors.services import Services


def _services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


Serving = Annotated[Services, Depends(_services)]


def guard_of_readers(request: Request) -> str:
    """Let anybody in who is signed in, and say who it is."""
    return _services(request).sign_in.identity(request).name


def guard_of_admins(request: Request) -> str:
    """Let administrators in, and say who it is."""
    identity = _services(request).sign_in.identity(request)
    identity.require_admin()
    return identity.name


def guard_of_operators(request: Request) -> str:
    """Let operators and administrators in, and say who it is (rule G11)."""
    identity = _services(request).sign_in.identity(request)
    identity.require(OPERATOR_ROLE)
    return identity.name


def guard_of_approvers(request: Request) -> Identity:
    """Let approvers and administrators in, and say all that is known of who it is (rules G11 and S4)."""
    identity = _services(request).sign_in.identity(request)
    identity.require(APPROVER_ROLE)
    return identity


def guard_of_bodies(request: Request) -> None:
    """Let a body be read from those who may change something; what each may change, its route says."""
    identity = _services(request).sign_in.identity(request)
    if not (identity.has(OPERATOR_ROLE) or identity.has(APPROVER_ROLE)):
        identity.require_admin()


# Who asks, by name. Anybody who is signed in may read; changes and queries of a source are for administrators, and
# what brings work to a stop or to go on for operators too.
Reader = Annotated[str, Depends(guard_of_readers)]
Admin = Annotated[str, Depends(guard_of_admins)]
Operator = Annotated[str, Depends(guard_of_operators)]
Approver = Annotated[Identity, Depends(guard_of_approvers)]
