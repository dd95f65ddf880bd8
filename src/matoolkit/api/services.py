"""What the routes work with, and how they get at it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from matoolkit.admin.deadletters import Read
from matoolkit.api.auth import SignIn
from matoolkit.clock import Clock
from matoolkit.ports import Publisher, Source
from matoolkit.runbook.model import DataSource
from matoolkit.store import Store


@dataclass(frozen=True, slots=True)
class Services:
    """The store, the bus, and the outside world as far as the API needs it."""

    store: Store
    publisher: Publisher
    read: Read
    open_source: Callable[[DataSource], Source]
    clock: Clock
    sign_in: SignIn


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


# Who asks, by name. Anybody who is signed in may read; changes and queries of a source are for administrators.
Reader = Annotated[str, Depends(guard_of_readers)]
Admin = Annotated[str, Depends(guard_of_admins)]
