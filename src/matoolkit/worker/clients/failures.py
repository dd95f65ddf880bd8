"""How a call fails, told without tokens, passwords or addresses of servers.

FunctionFailed
├── Throttled              tries are used up; the job is tried again later
├── InvalidIdentifier      nothing was called: an id is empty, or of a form that no id has
└── TenantFailed           the call did not do what it should
    ├── ObjectMissing      what the call is about is not there, or not there yet
    ├── Rejected           the service understood the call and said no
    │   ├── ObjectTaken    another object has the name or address already
    │   └── Forbidden      the worker's application may not do this
    ├── SignInFailed       there is no token, or none that the service accepts; the job is tried again later
    ├── Unreachable        no answer, or one that says the service is broken
    │   └── Unanswered     the same, of a change that may have been made
    └── UnreadableAnswer   the answer cannot be read
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


class Forbidden(Rejected):
    """The worker's application may not do this, says an API."""

    def __init__(self, message: str, *, api: str, attempts: int = 1) -> None:
        super().__init__(message, status=403, attempts=attempts)
        self.refused_by = api


class SignInFailed(TenantFailed):
    """There is no token, or none that the service accepts; no job fails for good because of it (rule W1)."""

    is_throttled = True


class Unreachable(TenantFailed):
    """No answer, or one that says the service is broken."""


class Unanswered(Unreachable):
    """No answer to a call that changes something; `is_over` unless it may still be at work."""

    def __init__(self, message: str, *, attempts: int = 1, is_over: bool = True) -> None:
        super().__init__(message, attempts=attempts)
        self.is_over = is_over


class UnreadableAnswer(TenantFailed):
    """An answer that cannot be read: not JSON, or not of the expected shape."""
