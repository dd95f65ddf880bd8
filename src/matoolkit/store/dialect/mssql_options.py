"""What SQL Server and Azure SQL say about themselves, a database and a session, and how it should be."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, text

from matoolkit.store.dialect.mssql_types import EXACT_COLLATION
from matoolkit.store.dialect.questions import Property

ASKED = text(
    "SELECT @@VERSION AS version, CAST(SERVERPROPERTY('EngineEdition') AS INT) AS edition,"
    " CAST(SERVERPROPERTY('ProductVersion') AS NVARCHAR(128)) AS product, @@LANGUAGE AS language, @@OPTIONS AS options,"
    " CAST(DATABASEPROPERTYEX(DB_NAME(), 'Updateability') AS NVARCHAR(20)) AS updateability,"
    " collation_name, compatibility_level, is_read_committed_snapshot_on, snapshot_isolation_state"
    " FROM sys.databases WHERE name = DB_NAME()"
)
# Azure SQL Database, Managed Instance and the database of Fabric: always of the newest version.
_AZURE_EDITIONS = frozenset({5, 8, 12})
# The first with OPENJSON, and the level at which a database offers it.
_OLDEST_PRODUCT, _LOWEST_LEVEL = 13, 130
_SNAPSHOT_ON = 1
# Bits of @@OPTIONS. Without the first, texts that are too long are cut; without the rest, no index has a condition.
_MUST_BE_ON = {"ANSI_WARNINGS": 8, "ANSI_PADDING": 16, "ANSI_NULLS": 32, "QUOTED_IDENTIFIER": 256}
# With the first a conflict ends the whole transaction; with the second nobody knows how many rows were changed.
_MUST_BE_OFF = {"XACT_ABORT": 16384, "NOCOUNT": 512}


def properties(connection: Connection) -> Iterator[Property]:
    """Ask once, and say what to do about each answer that is not as it should be."""
    found = connection.execute(ASKED).one()
    yield _version(found)
    level = found.compatibility_level
    yield Property(
        "compatibility level",
        str(level),
        "" if level >= _LOWEST_LEVEL else f"run ALTER DATABASE CURRENT SET COMPATIBILITY_LEVEL = {_LOWEST_LEVEL}",
    )
    is_exact = str(found.collation_name).upper().endswith(("_BIN", "_BIN2"))
    yield Property(
        "collation",
        str(found.collation_name),
        "" if is_exact else f"make a new database with COLLATE {EXACT_COLLATION}; this one takes Wave and wave for one",
    )
    yield _switch("READ_COMMITTED_SNAPSHOT", is_on=bool(found.is_read_committed_snapshot_on))
    yield _switch("ALLOW_SNAPSHOT_ISOLATION", is_on=found.snapshot_isolation_state == _SNAPSHOT_ON)
    is_writable = found.updateability == "READ_WRITE"
    yield Property(
        "updateability",
        str(found.updateability),
        "" if is_writable else "name the primary in MATOOLKIT_DATABASE_URL, without ApplicationIntent=ReadOnly",
    )
    yield _language(str(found.language))
    yield _session(found.options)


def _version(found: Any) -> Property:
    said = " ".join(str(found.version).split())[:100]
    is_new = found.edition in _AZURE_EDITIONS or int(str(found.product).partition(".")[0]) >= _OLDEST_PRODUCT
    return Property("version", said, "" if is_new else "use Azure SQL, or SQL Server 2016 or newer")


def _switch(name: str, *, is_on: bool) -> Property:
    return Property(name, "on" if is_on else "off", "" if is_on else f"run ALTER DATABASE CURRENT SET {name} ON")


def _language(language: str) -> Property:
    is_english = language.lower() in {"us_english", "english", "british"}
    todo = "run ALTER LOGIN … WITH DEFAULT_LANGUAGE = us_english (ALTER USER for a user without login)"
    return Property("language", language, "" if is_english else f"{todo}: passing errors are known by their texts")


def _session(options: int) -> Property:
    wrong = [f"{name} is off" for name, bit in _MUST_BE_ON.items() if not options & bit]
    wrong += [f"{name} is on" for name, bit in _MUST_BE_OFF.items() if options & bit]
    todo = "change the server's option `user options`, or what the address sets" if wrong else ""
    return Property("session", ", ".join(wrong) or "as it should be", todo)
