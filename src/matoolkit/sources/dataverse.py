"""Dataverse tables, read through the TDS endpoint of their organisation (rule R4).

The endpoint only reads, and knows no sign-in but Entra's: the token is asked for the organisation itself, since one for
Azure SQL, which the driver would ask for, is refused.
"""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from types import ModuleType
from typing import Any

from matoolkit.errors import SourceFailed
from matoolkit.ports import Piece
from matoolkit.sources.addresses import Address, read_address
from matoolkit.tokens import OneToken, Tokens

ADDRESS_EXAMPLE = "https://org.crm4.dynamics.com"
ROWS_IN_A_PIECE = 500
SIGN_IN_SECONDS = 30

_PORT = 1433
_QUERY_SECONDS = 1800
_SERVER = re.compile(r"(?:^|;)\s*(?:server|data source)\s*=\s*(?:tcp:)?([^;]*)", re.IGNORECASE)


class DataverseSource:
    """An organisation's tables. Each query has a connection of its own, which is closed after it."""

    def __init__(
        self,
        address: str,
        tokens: Tokens,
        *,
        rows_in_a_piece: int = ROWS_IN_A_PIECE,
        sign_in_seconds: int = SIGN_IN_SECONDS,
    ) -> None:
        self._address = read_dataverse_address(address)
        self._tokens = tokens
        self._rows = rows_in_a_piece
        self._sign_in_seconds = sign_in_seconds

    def pieces(self, query: str) -> Iterator[Piece]:
        """Run a query and return its result in pieces, at least one."""
        driver = _driver()
        token = self._tokens.token()
        with _told_in_our_words(driver, token), closing(self._connection(driver, token)) as connection:
            connection.timeout = _QUERY_SECONDS
            with closing(connection.cursor()) as cursor:
                cursor.execute(query)
                columns = tuple(str(column[0]) for column in cursor.description or ())
                # The driver's fetchmany takes a broken connection for the end of the result, and missing members would
                # count as gone. fetchone reports the break (ADR 14).
                rows = map(tuple, iter(cursor.fetchone, None))
                yield Piece(columns, list(islice(rows, self._rows)))
                while piece := list(islice(rows, self._rows)):
                    yield Piece(columns, piece)

    def _connection(self, driver: ModuleType, token: str) -> Any:
        # The driver's pool would keep the connection open after the query; its switch is for the whole process.
        driver.pooling(enabled=False)
        # The next tick tries again, so the driver need not.
        server = f"Server={self._address.host},{self._address.port or _PORT}"
        return driver.connect(
            f"{server};Encrypt=yes;TrustServerCertificate=no;ConnectRetryCount=0",
            autocommit=True,
            timeout=self._sign_in_seconds,
            token_provider=OneToken(token),
        )


def entra_scope(address: Address) -> str:
    """Return what a token must be for: the organisation, whatever the port of its endpoint."""
    return f"https://{address.host}/.default"


def read_dataverse_address(text: str) -> Address:
    """Read the organisation's address; of a SQL Server connection string only the server counts."""
    found = _SERVER.search(text)
    server = found[1] if found else text
    return read_address(re.sub(r",(\d+)\s*$", r":\1", server.strip()), ADDRESS_EXAMPLE)


def _driver() -> ModuleType:
    try:
        import mssql_python
    except (ImportError, OSError):
        message = "the driver for Dataverse is not installed"
        raise SourceFailed(message, hint="install matoolkit[mssql]") from None
    return mssql_python


@contextmanager
def _told_in_our_words(driver: ModuleType, token: str) -> Iterator[None]:
    try:
        yield
    except (driver.Error, RuntimeError, ValueError) as fault:
        said = str(getattr(fault, "ddbc_error", "") or fault).strip()
        said = (said.splitlines() or [type(fault).__name__])[0].replace(token, "***")
        message = f"Dataverse could not be queried: {said}"
        # The driver's own error may repeat what must not be shown.
        raise SourceFailed(message, hint=_hint(said)) from None


def _hint(said: str) -> str | None:
    if "Failed to load the driver" in said:
        return "install the system's libltdl library (Debian: libltdl7), or set MSSQL_PYTHON_NATIVE_PROVIDER=mssql-odbc"
    if "Login failed" in said:
        return (
            "check that the process's identity is an application user of the organisation and may use its TDS endpoint"
        )
    return None
