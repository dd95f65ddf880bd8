"""How a job fails: what functions raise, and what the worker itself refuses.

Anything else that a function raises is a failure too, told by the exception's name and text. A job that failed is tried
again only if its step asks for it; a throttled one is always tried again later (rule O7).
"""

from collections.abc import Sequence
from typing import ClassVar


class FunctionFailed(Exception):
    """A job could not be done; `type` names the kind of failure for people and programs, `attempts` the tries made.

    `refused_by` is the API that says that the worker's application may not do this, if that is what went wrong.
    """

    is_throttled: ClassVar[bool] = False
    refused_by: str | None = None

    def __init__(self, message: str, type: str | None = None, *, attempts: int = 1) -> None:  # noqa: A002
        super().__init__(message)
        self.message = message
        self.type = type or self.__class__.__name__
        self.attempts = attempts

    def __str__(self) -> str:
        return self.message


class Throttled(FunctionFailed):
    """The service asked to come back later, and tries are used up (rule W4)."""

    is_throttled = True


class InvalidParameters(FunctionFailed):
    """A job's parameters do not fit its function; says everything that is wrong with them."""

    def __init__(self, function: str, problems: Sequence[str]) -> None:
        super().__init__(f"{function}: {'; '.join(problems)}")
        self.problems = tuple(problems)


class UnknownFunction(FunctionFailed):
    """A job names a function that is not registered (rule W3)."""


class WrongWorker(FunctionFailed):
    """A job is for another worker."""


class UnusableResult(FunctionFailed):
    """A function returned something that cannot be sent: too large, or nothing that JSON knows."""


class SecretUnavailable(FunctionFailed):
    """A secret that a job names cannot be read."""


class SecretsBusy(SecretUnavailable, Throttled):
    """The store of secrets does not answer now; the job is tried again later."""
