"""The pages on which people sign in and out."""

import logging

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from matoolkit.doors.problems import problem
from matoolkit.errors import EntryTooOld, MatoolkitError, Refused
from matoolkit.web.entrance import DONE, SIGNED_OUT, Entrance
from matoolkit.web.entries import Entry, forget_entry, keep_entry, kept_entry
from matoolkit.web.rendering import address, bare
from matoolkit.web.returning import HOME, place_here
from matoolkit.web.serving import Serving
from matoolkit.web.visiting import Sending

router = APIRouter()
log = logging.getLogger(__name__)


@router.get("/signin")
def get_sign_in(request: Request, site: Serving, to: str = HOME, account: str = "") -> Response:
    """Send a person to Entra, and remember where they wanted to go."""
    entrance, place, choose = site.entrance, place_here(to), account == "other"
    if entrance is None or (not choose and entrance.sessions.is_on(request)):
        return RedirectResponse(place, 303)
    entry = Entry.begun(place)
    response = _onward("Signing in", entrance.way_in(entry, choose=choose))
    keep_entry(entrance.keeping, request, response, entry)
    return response


@router.get(DONE)
def get_signed_in(
    request: Request, site: Serving, state: str = "", code: str = "", error: str = "", error_description: str = ""
) -> Response:
    """Take a person in who comes back from Entra."""
    entrance = site.entrance
    if entrance is None:
        return RedirectResponse(HOME, 303)
    entry = kept_entry(entrance.keeping, request, state)
    if entry is None:
        return _back_without_entry(request, entrance)
    try:
        if error or not code:
            raise entrance.refused(error, error_description)
        identity = entrance.person(code, entry)
    except MatoolkitError as refused:
        response = _refused(refused, entry.to)
    else:
        response = RedirectResponse(entry.to, 303)
        entrance.sessions.begin(response, identity)
        log.info("a person signed in to the pages, %s", "with the role Admin" if identity.is_admin else "to read")
    forget_entry(entrance.keeping, response, entry)
    return response


@router.post("/signout")
def post_sign_out(site: Serving, sender: Sending) -> Response:  # noqa: ARG001 - only a form of ours signs out
    """Forget who is signed in, here and then at Entra."""
    if site.entrance is None:
        return RedirectResponse(HOME, 303)
    response = RedirectResponse("/signout/everywhere", 303)
    site.entrance.sessions.end(response)
    return response


@router.get("/signout/everywhere")
def get_sign_out_everywhere(site: Serving) -> Response:
    """Send a person to Entra to sign out there."""
    return _onward("Signing out", site.entrance.way_out()) if site.entrance else RedirectResponse(HOME, 303)


@router.get(SIGNED_OUT)
def get_signed_out() -> Response:
    """Say that nobody is signed in any more."""
    return HTMLResponse(bare("signed_out.html"))


def _back_without_entry(request: Request, entrance: Entrance) -> Response:
    """Answer a page that is loaded again after it has done its work, or a return that we know nothing of."""
    if entrance.sessions.is_on(request):
        return RedirectResponse(HOME, 303)
    return _refused(EntryTooOld(entrance.address), HOME)


def _refused(error: MatoolkitError, to: str) -> Response:
    if not isinstance(error, Refused) and not error.is_outage:
        log.error("signing in to the pages: %s %s", error.code, error.message)
    told, again = problem(error), address("/signin", {"to": to})
    other = address("/signin", {"to": to, "account": "other"})
    return HTMLResponse(bare("entry_refused.html", problem=told, again=again, other=other), told.status)


def _onward(title: str, to: str) -> Response:
    """Send a browser to Entra by a page: a policy forbids forms to end elsewhere, also by a redirect."""
    return HTMLResponse(bare("onward.html", title=title, to=to))
