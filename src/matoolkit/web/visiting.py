"""Who looks at a page, how that person wants it, and whether a change was sent from one of our pages."""

import secrets
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, available_timezones

from fastapi import Depends, Response
from starlette.requests import Request

from matoolkit.doors.identity import Identity
from matoolkit.errors import FormTooOld
from matoolkit.web.saying import Saying
from matoolkit.web.serving import Site, site_of

Theme = Literal["auto", "light", "dark"]
THEMES: tuple[Theme, ...] = ("auto", "light", "dark")

VISIT, ZONE, THEME, DONE = "matoolkit-visit", "matoolkit-zone", "matoolkit-theme", "matoolkit-done"
_CSRF = "csrf"
# Everybody may change how pages look to them, and sign out.
_OWN_MATTERS = frozenset({"/preferences", "/signout"})
_A_YEAR = timedelta(days=365)


@cache
def known_zones() -> frozenset[str]:
    """Return the names of all zones; looking for them takes a while."""
    return frozenset(available_timezones())


@dataclass(frozen=True, slots=True)
class Viewer:
    """A person who looks at a page."""

    identity: Identity
    visit: str
    is_new: bool
    say: Saying
    theme: Theme
    token: str

    @property
    def may_change(self) -> bool:
        """Whether the person may make changes."""
        return self.identity.is_admin

    def like_others(self, now: datetime) -> "Viewer":
        """Return anybody who may do the same and reads times in the same zone, to write for all of them at once."""
        somebody = Identity("", self.identity.is_admin)
        return replace(self, identity=somebody, visit="", token="", say=Saying(self.say.zone, now))


def viewer_of(request: Request) -> Viewer:
    """Say who looks at a page, or refuse."""
    site = site_of(request)
    identity = site.sign_in.identity(request)
    known = request.cookies.get(VISIT, "")
    visit = known or secrets.token_urlsafe(16)
    say = Saying(_zone(request, site), site.services.clock.now())
    theme = next((one for one in THEMES if one == request.cookies.get(THEME)), THEMES[0])
    token = site.seal.mark(_CSRF, visit, identity.name)
    return Viewer(identity, visit, not known, say, theme, token)


def decider_of(viewer: Annotated[Viewer, Depends(viewer_of)]) -> Viewer:
    """Let an administrator look at what a change would do."""
    viewer.identity.require_admin()
    return viewer


async def sender_of(request: Request, viewer: Annotated[Viewer, Depends(viewer_of)]) -> Viewer:
    """Let a person in who sent a form from one of our pages."""
    form = await request.form()
    given = str(form.get(_CSRF) or "")
    if viewer.is_new or not site_of(request).seal.is_mark(given, _CSRF, viewer.visit, viewer.identity.name):
        raise FormTooOld
    return viewer


async def admin_of(sender: Annotated[Viewer, Depends(sender_of)]) -> Viewer:
    """Let an administrator in who sent a form from one of our pages."""
    sender.identity.require_admin()
    return sender


Looking = Annotated[Viewer, Depends(viewer_of)]
Deciding = Annotated[Viewer, Depends(decider_of)]
Sending = Annotated[Viewer, Depends(sender_of)]
Changing = Annotated[Viewer, Depends(admin_of)]


def may_send(request: Request) -> None:
    """Refuse those who may not send anything, before a body is read."""
    identity = site_of(request).sign_in.identity(request)
    if request.scope["path"] not in _OWN_MATTERS:
        identity.require_admin()


def remember(response: Response, site: Site, name: str, value: str, lasting: timedelta = _A_YEAR) -> None:
    """Let the browser keep something that only it and we read."""
    response.set_cookie(
        name, value, max_age=int(lasting.total_seconds()), httponly=True, samesite="lax", secure=site.is_https
    )


def _zone(request: Request, site: Site) -> ZoneInfo:
    wanted = request.cookies.get(ZONE, "")
    return ZoneInfo(wanted if wanted in known_zones() else site.zone)
