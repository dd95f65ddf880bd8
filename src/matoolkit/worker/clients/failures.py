"""How a call fails, told without tokens, passwords or addresses of servers.

FunctionFailed
├── Throttled              tries are used up; the job is tried again later
├── InvalidIdentifier      nothing was called: an id is empty, or of a form that no id has
└── TenantFailed           the call did not do what it should
    ├── ObjectMissing      what the call is about is not there, or not there yet
    ├── Rejected           the service understood the call and said no
    │   └── ObjectTaken    another object has the name or address already
    ├── SignInFailed       there is no token, or none that the service accepts
    ├── Unreachable        no answer, or one that says the service is broken
    └── UnreadableAnswer   an answer that is none
"""

from matoolkit.worker.failures import FunctionFailed


class InvalidIdentifier(FunctionFailed):
    """An id is empty, or of a form that no id has."""


class TenantFailed(FunctionFailed):
    """A call to the tenant failed."""


class ObjectMissing(TenantFailed):
    """What the call is about is not there, or not there yet."""


class Rejected(TenantFailed):
    """The service said no; `after_loss` if an earlier try of the same call may have been carried out."""

    def __init__(self, message: str, *, status: int = 400, attempts: int = 1, after_loss: bool = False) -> None:
        super().__init__(message, attempts=attempts)
        self.status = status
        self.after_loss = after_loss


class ObjectTaken(Rejected):
    """Another object has the name or address already."""


class SignInFailed(TenantFailed):
    """There is no token, or none that the service accepts."""


class Unreachable(TenantFailed):
    """No answer, or one that says the service is broken."""


class UnreadableAnswer(TenantFailed):
    """An answer that is none: no JSON, or not of the shape that the call has."""
