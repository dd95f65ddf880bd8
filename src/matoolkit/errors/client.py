"""What can go wrong between the command line and the admin API."""

from collections.abc import Mapping, Sequence
from typing import Any

from matoolkit.errors.root import MatoolkitError, Refused

_BY_STATUS = {401: 4, 403: 4, 421: 4, 404: 3, 409: 5, 412: 5, 423: 5, 428: 5}
_FIRST_FAULT = 500
_MOST_NAMED = 5


class ProblemOfServer(MatoolkitError):
    """The admin API refused or failed; code, status and hint are those it gave."""

    code = "CL400"

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str | None = None,
        hint: str | None = None,
        errors: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.errors = errors
        self.code = code or type(self).code
        self.http_status = status
        self.exit_code = _exit_code(status, code)
        self.transient = status >= _FIRST_FAULT


_LOOK_FIRST = "it may have been done anyway: look before you repeat it"


class ServerUnreachable(MatoolkitError):
    """Nobody answers at the address of the admin API."""

    code = "CL503"
    http_status = 503
    transient = True

    def __init__(self, address: str, why: str, *, may_be_done: bool = False) -> None:
        where = "`matoolkit config show` says where the address comes from"
        running = f"is it running (`matoolkit up`, `matoolkit api serve`)? {where}"
        if may_be_done:
            super().__init__(f"the connection to the admin API at {address} was lost: {why}", hint=_LOOK_FIRST)
        else:
            super().__init__(f"cannot reach the admin API at {address}: {why}", hint=running)


class ServerTooSlow(MatoolkitError):
    """The admin API did not answer in time."""

    code = "CL504"
    http_status = 504
    transient = True

    def __init__(self, address: str, seconds: float, *, may_be_done: bool) -> None:
        looking = f"{_LOOK_FIRST}; " if may_be_done else ""
        super().__init__(
            f"the admin API at {address} did not answer within {seconds:g} s",
            hint=f"{looking}MATOOLKIT_API_TIMEOUT gives it longer",
        )


class UnreadableAnswer(MatoolkitError):
    """An answer does not come from an admin API."""

    code = "CL502"
    http_status = 502

    def __init__(self, address: str, why: str, *, hint: str | None = None) -> None:
        super().__init__(
            f"the answer of {address} cannot be used: {why}",
            hint=hint or "is that the address of an admin API? `matoolkit config show` says where it comes from",
        )


class SignInNeeded(Refused):
    """Nobody is signed in on this machine, or the sign-in has run out."""

    code = "CL401"
    http_status = 401
    exit_code = 4

    def __init__(self, why: str, *, hint: str = "sign in with `matoolkit auth login`") -> None:
        super().__init__(f"not signed in: {why}", hint=hint)


class SignInFailed(Refused):
    """Signing in did not work."""

    code = "CL403"
    http_status = 403
    exit_code = 4

    def __init__(self, why: str, *, hint: str | None = None) -> None:
        super().__init__(f"could not sign in: {why}", hint=hint)


class ConfirmationNeeded(Refused):
    """A confirmation is needed, and there is no terminal to ask on."""

    code = "CL428"
    http_status = 428

    def __init__(self, question: str) -> None:
        super().__init__(f"this needs a confirmation: {question}", hint="there is no terminal to ask on: give --yes")


class UnknownFailure(Refused):
    """No step of the batch failed like this one."""

    code = "CL404"
    http_status = 404
    exit_code = 3

    def __init__(self, batch: int, step: int) -> None:
        super().__init__(
            f"no step of batch {batch} has failed like step {step}",
            hint=f"`matoolkit batch failures {batch}` lists what has",
        )


class UnknownPerson(Refused):
    """Nobody has this key, address or number, in a batch or in all of them."""

    code = "CL405"
    http_status = 404
    exit_code = 3

    def __init__(
        self,
        who: str,
        batch: int | None,
        hint: str = "`matoolkit member find PART` looks for a part of a key in all batches",
    ) -> None:
        where = "no batch" if batch is None else f"batch {batch}"
        has = "has or had" if batch is None else "has no"
        super().__init__(f"{where} {has} {'a ' if batch is None else ''}member '{who}'", hint=hint)


class AmbiguousPerson(Refused):
    """A text names several people."""

    code = "CL409"
    http_status = 409
    exit_code = 2

    def __init__(self, who: str, candidates: Sequence[str]) -> None:
        shown = ", ".join(candidates[:_MOST_NAMED])
        more = f" and {len(candidates) - _MOST_NAMED} more" if len(candidates) > _MOST_NAMED else ""
        super().__init__(f"'{who}' may be {shown}{more}", hint="give the whole key, or the number")


class UnwritableFile(Refused):
    """A file cannot be written."""

    code = "IN403"
    http_status = 403

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot write {path}: {reason}")


def _exit_code(status: int, code: str | None) -> int:
    """Return the exit code of the same error when it happens here, if it is one of ours."""
    if status >= _FIRST_FAULT:
        return MatoolkitError.exit_code
    known = {error.code: error.exit_code for error in _all(MatoolkitError)}
    return known.get(code or "", _BY_STATUS.get(status, Refused.exit_code))


def _all(root: type[MatoolkitError]) -> list[type[MatoolkitError]]:
    return [root, *(found for child in root.__subclasses__() for found in _all(child))]
