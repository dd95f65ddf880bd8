"""What can be wrong with a request before its content is looked at."""

from collections.abc import Sequence
from dataclasses import dataclass

from matoolkit.errors.root import MatoolkitError, Refused


@dataclass(frozen=True, slots=True)
class Flaw:
    """One thing that is wrong with a request; the pointer names its place in the body or the address."""

    pointer: str
    message: str


class InvalidRequest(Refused):
    """A request does not have the right form; the error lists all problems at once."""

    code = "AP422"
    http_status = 422

    def __init__(self, flaws: Sequence[Flaw]) -> None:
        said = "; ".join(f"{flaw.pointer}: {flaw.message}" for flaw in flaws)
        super().__init__(said, hint="/openapi.json says what each route takes")
        self.flaws = tuple(flaws)


class UnknownRoute(Refused):
    """Nothing is served at this address."""

    code = "AP404"
    http_status = 404
    exit_code = 3

    def __init__(self, path: str) -> None:
        super().__init__(f"nothing is served at {path}", hint="/openapi.json lists every route")


class WrongMethod(Refused):
    """The address is served, but not with this method."""

    code = "AP405"
    http_status = 405

    def __init__(self, method: str, path: str) -> None:
        super().__init__(f"{path} does not take {method}", hint="/openapi.json lists every route")


class BodyTooLarge(Refused):
    """A body is larger than the limit of its kind."""

    code = "AP413"
    http_status = 413

    def __init__(self, largest: int) -> None:
        super().__init__(f"the body is too large; at most {largest:,} bytes are taken")


class WrongContentType(Refused):
    """The route does not read a body of this type."""

    code = "AP415"
    http_status = 415

    def __init__(self, given: str, taken: Sequence[str]) -> None:
        super().__init__(f"a body of type '{given}' is not read here", hint=f"send {' or '.join(taken)}")


class InvalidCursor(Refused):
    """A cursor does not belong to this list."""

    code = "AP400"

    def __init__(self) -> None:
        super().__init__("the cursor does not belong to this list", hint="pass on `next` of the page before, unchanged")


class KeyReused(Refused):
    """An Idempotency-Key came again with another request."""

    code = "AP409"
    http_status = 409
    exit_code = 5

    def __init__(self) -> None:
        super().__init__(
            "this Idempotency-Key was used for another request; nothing was changed",
            hint="make a new key for each new request, and reuse it only to repeat exactly that request",
        )


class ChangedSince(Refused):
    """The state has changed since the caller read it."""

    code = "AP412"
    http_status = 412
    exit_code = 5

    def __init__(self) -> None:
        super().__init__(
            "it has changed since you read it; nothing was changed",
            hint="read it again, and send its new ETag as If-Match",
        )


class NotSignedIn(Refused):
    """A request has no token, or one that is not accepted here."""

    code = "AP401"
    http_status = 401
    exit_code = 4

    def __init__(self, why: str, hint: str = "send an Entra token for this API as `Authorization: Bearer …`") -> None:
        super().__init__(f"not signed in: {why}", hint=hint)


class RoleMissing(Refused):
    """The caller is signed in, but does not have the role that this needs."""

    code = "AP403"
    http_status = 403
    exit_code = 4

    def __init__(self, role: str) -> None:
        super().__init__(f"this needs the role '{role}'", hint="an administrator of the Entra application assigns it")


class NotFromHere(Refused):
    """Without sign-in only programs on the same machine are answered."""

    code = "AP421"
    http_status = 421
    exit_code = 4

    def __init__(self, why: str) -> None:
        super().__init__(
            f"without sign-in only this machine is answered: {why}",
            hint="set MATOOLKIT_ENTRA_TENANT_ID and MATOOLKIT_ENTRA_CLIENT_ID to serve others",
        )


class SignInRequired(Refused):
    """The API would be served to other machines without sign-in."""

    code = "AP411"
    exit_code = 2

    def __init__(self, host: str) -> None:
        super().__init__(
            f"will not serve on {host} without sign-in: only a loopback address is allowed then",
            hint="set MATOOLKIT_ENTRA_TENANT_ID and MATOOLKIT_ENTRA_CLIENT_ID, or serve on 127.0.0.1",
        )


class SignInUnavailable(MatoolkitError):
    """The keys that tokens are signed with cannot be fetched."""

    code = "AP503"
    http_status = 503
    transient = True
    is_outage = True

    def __init__(self) -> None:
        super().__init__("Entra's signing keys cannot be fetched now", hint="try again in a moment")
