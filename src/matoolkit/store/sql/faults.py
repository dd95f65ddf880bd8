"""Errors of drivers, told apart and put into words."""

import re
from collections.abc import Iterator

from sqlalchemy import exc
from sqlalchemy.engine import URL

from matoolkit.errors import MatoolkitError, StoreBusy, StoreError, StoreUnavailable
from matoolkit.store.dialect import Dialect

_ABOUT_VALUES = (exc.IntegrityError, exc.DataError)
_SECRET = re.compile("password|pwd|secret|token|key", re.IGNORECASE)


class ToldApart:
    """Turns an error of the driver within a block into one of ours; its text never holds a password or a value."""

    __slots__ = ("_dialect", "_url")

    def __init__(self, dialect: Dialect, url: URL) -> None:
        self._dialect = dialect
        self._url = url

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, fault: BaseException | None, _traceback: object) -> None:
        if isinstance(fault, _ABOUT_VALUES):
            # PostgreSQL adds the row that it refuses, which a traceback would write to the log.
            raise _error(self._dialect, self._url, fault) from None
        if isinstance(fault, exc.DBAPIError):
            raise _error(self._dialect, self._url, fault) from fault
        if isinstance(fault, exc.StatementError):
            if isinstance(fault.orig, MatoolkitError):
                raise fault.orig from None
            raise StoreError(f"a value cannot be stored: {fault.orig}") from None
        if isinstance(fault, exc.TimeoutError):
            raise StoreBusy("all connections to the database are in use") from fault
        if isinstance(fault, exc.PendingRollbackError | exc.ResourceClosedError):
            raise StoreUnavailable("the connection to the database broke during the transaction") from fault


def _error(dialect: Dialect, url: URL, fault: exc.DBAPIError) -> StoreError:
    cause = fault.orig or fault
    kind = StoreUnavailable if fault.connection_invalidated else dialect.error_for(cause)
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    message = lines[0]
    for secret in _secrets(url):
        message = message.replace(secret, "***")
    return kind(f"{dialect.title}: {message}")


def _secrets(url: URL) -> Iterator[str]:
    if url.password:
        yield str(url.password)
    for name, value in url.query.items():
        if _SECRET.search(name):
            yield from (value,) if isinstance(value, str) else value
