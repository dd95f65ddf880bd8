"""Errors of drivers, told apart and put into words."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import exc
from sqlalchemy.engine import URL

from matoolkit.errors import MatoolkitError, StoreBusy, StoreError, StoreUnavailable
from matoolkit.store.dialect import Dialect

_SECRET = re.compile("password|pwd|secret|token|key", re.IGNORECASE)


@contextmanager
def told_apart(dialect: Dialect, url: URL) -> Iterator[None]:
    """Turn an error of the driver into one of ours; its text never holds a password or a value."""
    try:
        yield
    except exc.DBAPIError as fault:
        raise _error(dialect, url, fault) from fault
    except exc.StatementError as fault:
        if isinstance(fault.orig, MatoolkitError):
            raise fault.orig from None
        raise StoreError(f"a value cannot be stored: {fault.orig}") from None
    except exc.TimeoutError as fault:
        raise StoreBusy("all connections to the database are in use") from fault
    except (exc.PendingRollbackError, exc.ResourceClosedError) as fault:
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
