"""What is wrong, as people and programs are told (RFC 9457): a stable code, a hint, and no internal details."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from matoolkit.errors import (
    Flaw,
    InvalidMembers,
    InvalidRequest,
    InvalidRunbook,
    MatoolkitError,
    RowConflict,
    StoreError,
)

_MOST_ERRORS = 200


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
