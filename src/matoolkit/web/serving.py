"""What the pages work with, and how they get at it."""

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from matoolkit.doors.identity import SignIn
from matoolkit.doors.services import Services
from matoolkit.web.looking import Looks
from matoolkit.web.sealing import Seal


@dataclass(frozen=True, slots=True)
class Site:
    """The services, how people sign in to pages, and what this installation wants to be called.

    Where answers cannot be streamed, pages ask again and again instead.
    """

    services: Services
    sign_in: SignIn
    seal: Seal
    label: str | None = None
    zone: str = "UTC"
    streams: bool = True
    is_https: bool = False
    signs_out: bool = False
    fresh_seconds: float = 1.0
    looks: Looks = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "looks", Looks(self.services.store, self.fresh_seconds))


def site_of(request: Request) -> Site:
    """Return what a request is served with."""
    found: Site = request.app.state.site
    return found


Serving = Annotated[Site, Depends(site_of)]
