"""Every refusal and every fault of the API as a problem document (RFC 9457)."""

import logging

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from matoolkit.doors.problems import flaws_of, problem
from matoolkit.errors import Flaw, InvalidRequest, MatoolkitError, NotSignedIn, Refused, UnknownRoute, WrongMethod

MEDIA_TYPE = "application/problem+json"

log = logging.getLogger(__name__)


def add_problem_handlers(app: FastAPI) -> None:
    """Let the application answer every error as a problem."""
    app.add_exception_handler(MatoolkitError, _of_ours)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_framework)
    app.add_exception_handler(Exception, _of_bug)


def answer(error: MatoolkitError) -> Response:
    """Write an error as a response."""
    headers = {"WWW-Authenticate": "Bearer"} if isinstance(error, NotSignedIn) else {}
    if error.transient:
        headers["Retry-After"] = "5"
    content = orjson.dumps(problem(error).model_dump(exclude_none=True))
    return Response(content, error.http_status, headers, MEDIA_TYPE)


def _of_ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, MatoolkitError)  # noqa: S101 - registered for these only
    # The store logs its own outages, once for all requests.
    if not isinstance(error, Refused) and not error.is_outage:
        log.error("%s %s: %s %s", request.method, request.scope["path"], error.code, error.message)
    return answer(error)


def _of_validation(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for these only
    return answer(InvalidRequest(flaws_of(list(error.errors()))))


def _of_framework(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for these only
    path = request.scope["path"]
    match error.status_code:
        case 404:
            return answer(UnknownRoute(path))
        case 405:
            refused = answer(WrongMethod(request.method, path))
            refused.headers["Allow"] = ", ".join(_methods(request))
            return refused
        case _:
            return answer(InvalidRequest([Flaw("/body", "cannot be read")]))


def _methods(request: Request) -> list[str]:
    """Return all methods of an address; the framework returns only those of the first route that matches."""
    parts = request.scope["path"].split("/")
    return sorted(
        method.upper()
        for template, methods in request.app.openapi()["paths"].items()
        if len(template.split("/")) == len(parts)
        and all(known in ("", part) or known[0] == "{" for known, part in zip(template.split("/"), parts, strict=True))
        for method in methods
    )


def _of_bug(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.scope["path"], exc_info=error)
    return answer(MatoolkitError("this is a bug in matoolkit", hint="the log of the API says where"))
