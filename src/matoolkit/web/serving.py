"""What the pages work with, and how they get at it."""

import math
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from matoolkit.doors.identity import SignIn
from matoolkit.doors.services import Services
from matoolkit.web.entrance import Entrance
from matoolkit.web.looking import Looks
from matoolkit.web.matrices import Matrices
from matoolkit.web.sealing import Seal


@dataclass(frozen=True, slots=True)
class Site:
    """The services, how people sign in to pages, and what this installation wants to be called.

    Without Entra there is no entrance. Where answers cannot be streamed, pages ask again and again instead.
    """

    services: Services
    sign_in: SignIn
    seal: Seal
    label: str | None = None
    zone: str = "UTC"
    streams: bool = True
    is_https: bool = False
    entrance: Entrance | None = None
    fresh_seconds: float = 1.0
    looks: Looks = field(init=False)
    matrices: Matrices = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "looks", Looks(self.services.store, self.fresh_seconds))
        object.__setattr__(self, "matrices", Matrices(self.services.store, self.fresh_seconds))

    @property
    def signs_out(self) -> bool:
        """Whether people sign in here, and so can sign out."""
        return self.entrance is not None

    def seconds_left(self, request: Request) -> float:
        """Return how long the sender of a request stays signed in."""
        return self.entrance.sessions.seconds_left(request) if self.entrance else math.inf


def site_of(request: Request) -> Site:
    """Return what a request is served with."""
    found: Site = request.app.state.site
    return found


Serving = Annotated[Site, Depends(site_of)]
