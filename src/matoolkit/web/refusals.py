"""Refusals as pages: what is wrong, what to do, and its code; a part of a page gets a part."""

import logging
from urllib.parse import urlencode

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from matoolkit.doors.problems import flaws_of, problem
from matoolkit.errors import (
    BodyTooLarge,
    Flaw,
    InvalidRequest,
    MatoolkitError,
    NotSignedIn,
    Refused,
    UnknownRoute,
    WrongMethod,
)
from matoolkit.runbook.source import MAX_BYTES
from matoolkit.web.rendering import Frame, bare, is_fragment, page, rendered
from matoolkit.web.visiting import viewer_of

_NO_FORM = Flaw("/body", "is not a form that can be read")

log = logging.getLogger(__name__)


def add_refusals(app: FastAPI) -> None:
    """Let the pages answer every error in words."""
    app.add_exception_handler(MatoolkitError, _of_ours)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_framework)
    app.add_exception_handler(Exception, _of_bug)


def refusal(request: Request, error: MatoolkitError) -> Response:
    """Write an error as a page, or as a part of one."""
    if isinstance(error, NotSignedIn) and request.method == "GET" and not is_fragment(request):
        return RedirectResponse(f"/signin?{urlencode({'to': _place(request)})}", 303)
    told = problem(error)
    try:
        viewer = viewer_of(request)
        if is_fragment(request):
            return HTMLResponse(rendered(viewer, "refused.html", problem=told), told.status)
        frame = Frame(told.title, "")
        return page(request, viewer, "error.html", frame, status=told.status, problem=told)
    except MatoolkitError:
        # Nobody is signed in, or the database is away: then there is no frame either.
        template = "refused.html" if is_fragment(request) else "bare.html"
        return HTMLResponse(bare(template, problem=told), told.status)


def _place(request: Request) -> str:
    # As it was sent: a name in it may hold a quoted `?` or `/`.
    sent = request.scope.get("raw_path") or request.url.path.encode()
    return sent.decode("ascii", "replace") + (f"?{request.url.query}" if request.url.query else "")


def _of_ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, MatoolkitError)  # noqa: S101 - registered for these only
    # The store logs its own outages, once for all requests.
    if not isinstance(error, Refused) and not error.is_outage:
        log.error("%s %s: %s %s", request.method, request.scope["path"], error.code, error.message)
    return refusal(request, error)


def _of_validation(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for these only
    return refusal(request, InvalidRequest(flaws_of(list(error.errors()))))


def _of_framework(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for these only
    path = request.scope["path"]
    if error.status_code == 400:
        # The parser of forms has no other sign than its words.
        is_long = "exceeded" in error.detail
        return refusal(request, BodyTooLarge(MAX_BYTES) if is_long else InvalidRequest([_NO_FORM]))
    is_wrong_method = error.status_code == 405
    return refusal(request, WrongMethod(request.method, path) if is_wrong_method else UnknownRoute(path))


def _of_bug(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.scope["path"], exc_info=error)
    return refusal(request, MatoolkitError("this is a bug in matoolkit", hint="the log of the API says where"))
