"""What came back, in words: an object, the server's own problem, or something unreadable."""

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson

from matoolkit.errors import MatoolkitError, ProblemOfServer, UnreadableAnswer

if TYPE_CHECKING:
    import httpx

_LONGEST = 2000
_ERRNO = re.compile(r"\[Errno -?\d+\]\s*")
_SIGN_IN = "sign in with `matoolkit auth login`, or set MATOOLKIT_ACCESS_TOKEN"


def as_object(address: str, answer: "httpx.Response", content: bytes) -> dict[str, Any]:
    """Read an answer that should be a JSON object."""
    found = _loaded(content)
    if isinstance(found, dict):
        return found
    raise UnreadableAnswer(address, f"it is {_kind(answer, content)}, not a JSON object")


def problem_of(address: str, answer: "httpx.Response", content: bytes) -> MatoolkitError:
    """Return the error that an answer stands for."""
    status = answer.status_code
    if answer.is_redirect:
        where = printable(answer.headers.get("location", "nowhere"), 200)
        hint = f"if that is your admin API, say so: `matoolkit config set api-url {where}`"
        return UnreadableAnswer(address, f"it sends us to {where}", hint=hint)
    problem = _loaded(content)
    if not isinstance(problem, dict) or not isinstance(problem.get("detail"), str):
        return UnreadableAnswer(address, f"status {status} with {_kind(answer, content)}")
    return ProblemOfServer(
        printable(problem["detail"]),
        status=status,
        code=_text(problem.get("code"), 20),
        hint=_SIGN_IN if status == HTTPStatus.UNAUTHORIZED else _text(problem.get("hint"), _LONGEST),
        errors=[error for error in problem.get("errors") or [] if isinstance(error, dict)],
    )


def reason(fault: Exception) -> str:
    """Say why a connection failed, without the numbers of the operating system."""
    text = _ERRNO.sub("", str(fault)).strip()
    return printable(text[:1].lower() + text[1:], 300) or type(fault).__name__


def printable(text: object, longest: int = _LONGEST) -> str:
    """Make a text from elsewhere safe to show: not too long, no control characters."""
    told = str(text)
    shown = told if len(told) <= longest else f"{told[: longest - 1]}…"
    if shown.isprintable():
        return shown
    return "".join(letter if letter.isprintable() else " " if letter.isspace() else "�" for letter in shown)


def _text(value: object, longest: int) -> str | None:
    return printable(value, longest) if isinstance(value, str) and value else None


def _loaded(content: bytes) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return None


def _kind(answer: "httpx.Response", content: bytes) -> str:
    if not content:
        return "nothing"
    if _loaded(content) is not None:
        return "other JSON"
    kind = answer.headers.get("content-type", "").partition(";")[0].strip()
    if kind.endswith("json"):
        return "JSON that is cut off or not valid"
    return printable(kind, 100) or "something without a type"
