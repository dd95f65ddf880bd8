"""Every refusal and every fault as a problem document (RFC 9457), with a stable code and no internal details."""

import logging
from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from matoolkit.errors import (
    Flaw,
    InvalidMembers,
    InvalidRequest,
    InvalidRunbook,
    MatoolkitError,
    NotSignedIn,
    Refused,
    RowConflict,
    StoreError,
    UnknownRoute,
    WrongMethod,
)

MEDIA_TYPE = "application/problem+json"
_MOST_ERRORS = 200

log = logging.getLogger(__name__)


class ProblemError(BaseModel):
    """One of the things that are wrong."""

    model_config = ConfigDict(extra="forbid")

    message: str
    pointer: str | None = Field(None, description="Its place in the body or the address.")
    line: int | None = None
    column: int | None = None
    code: str | None = Field(None, description="Code of a finding in a runbook.")
    hint: str | None = None


class Problem(BaseModel):
    """What is wrong, where, and what to do."""

    model_config = ConfigDict(extra="forbid")

    type: str = Field(description="`urn:matoolkit:error:` and the code.")
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable; `matoolkit explain` lists them all.")
    hint: str | None = None
    errors: list[ProblemError] = []


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


def problem(error: MatoolkitError) -> Problem:
    """Describe an error; for errors of the database only the kind, because the rest is the driver's text."""
    title = (type(error).__doc__ or "").split("\n", 1)[0].rstrip(".")
    is_inside = isinstance(error, StoreError) and not isinstance(error, RowConflict)
    return Problem(
        type=f"urn:matoolkit:error:{error.code}",
        title=title,
        status=error.http_status,
        detail=title if is_inside else error.message,
        code=error.code,
        hint=error.hint,
        errors=_errors(error)[:_MOST_ERRORS],
    )


def _errors(error: MatoolkitError) -> list[ProblemError]:
    match error:
        case InvalidRunbook():
            return [
                ProblemError(
                    message=found.message,
                    pointer=_pointer(found.path),
                    line=found.line,
                    column=found.column,
                    code=found.code,
                    hint=found.hint,
                )
                for found in error.findings
            ]
        case InvalidRequest():
            return [ProblemError(message=flaw.message, pointer=flaw.pointer) for flaw in error.flaws]
        case InvalidMembers():
            return [ProblemError(message=said) for said in error.problems]
        case _:
            return []


def _pointer(path: tuple[str | int, ...]) -> str:
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def flaws_of(errors: list[Any]) -> list[Flaw]:
    """Describe the errors of the validation, without the values, which may be secrets."""
    return [Flaw(_pointer(tuple(error["loc"])) or "/", _in_words(error)) for error in errors]


def _in_words(error: Mapping[str, Any]) -> str:
    if error["type"] == "json_invalid":
        return "is not valid JSON"
    return str(error["msg"]).removeprefix("Value error, ").replace("Input should", "should")


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
