"""Which dialect an address asks for."""

from sqlalchemy.engine import URL

from matoolkit.errors import InvalidDatabaseUrl
from matoolkit.store.dialect.mssql import SqlServer
from matoolkit.store.dialect.postgresql import PostgreSQL
from matoolkit.store.dialect.questions import Dialect
from matoolkit.store.dialect.sqlite import SQLite

_DIALECTS: dict[str, type[Dialect]] = {
    "sqlite": SQLite,
    "postgresql": PostgreSQL,
    "postgres": PostgreSQL,
    "mssql": SqlServer,
}


def dialect_for(url: URL) -> Dialect:
    """Return the dialect of the database that a URL names."""
    try:
        return _DIALECTS[url.drivername.partition("+")[0]]()
    except KeyError:
        raise InvalidDatabaseUrl(f"'{url.drivername}' is not a supported database") from None
