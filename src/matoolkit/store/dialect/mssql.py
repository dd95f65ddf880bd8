"""SQL Server and Azure SQL, through Microsoft's own driver."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Insert,
    Select,
    String,
    Table,
    column,
    exists,
    func,
    select,
    text,
)
from sqlalchemy.engine import URL

from matoolkit.clock import Clock, as_utc
from matoolkit.clouds import Cloud
from matoolkit.errors import StoreBusy, StoreError, UnknownServer
from matoolkit.store.dialect.mssql_errors import told_apart
from matoolkit.store.dialect.mssql_options import properties
from matoolkit.store.dialect.mssql_roles import mssql_roles
from matoolkit.store.dialect.mssql_signin import sign_in_of
from matoolkit.store.dialect.mssql_types import driver_types, json_type, read_from_json
from matoolkit.store.dialect.questions import Columns, Dialect, Property, Rights, Rows, SignIn, Typing, parameter
from matoolkit.store.dialect.types import Instant

# A query that is part of a statement may only be sorted if it is also limited.
_ALL = 2_147_483_647

# As SQLAlchemy reads it.
_VERSION = re.compile(r"Microsoft .*? - \d+\.\d+\.\d+\.\d+")
_LONGEST_VERSION = 120

_LOCK = "WITH (UPDLOCK, ROWLOCK)"
# Rows are passed by only where they are read with locks, which read-committed snapshot, Azure's default, does not do.
_LOCK_WHAT_IS_FREE = "WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)"
# The gap stays locked too. At the end of an index it reaches to the end, where others insert as well: two of them may
# end in a deadlock, which undoes one of the transactions, and its work is tried again (rule M6).
_LOCK_WITH_GAP = "WITH (UPDLOCK, HOLDLOCK, ROWLOCK)"


class SqlServer(Dialect):
    """SQL Server's answers."""

    name = "mssql"
    title = "SQL Server"
    driver = "mssql+mssqlpython"
    extra = "mssql"
    reads_apart = True
    keeps_order = False
    # NVARCHAR(max) instead of NTEXT, which is deprecated.
    writing_options: ClassVar[Mapping[str, Any]] = {"deprecate_large_types": True}

    def engine_options(self, url: URL) -> dict[str, Any]:  # noqa: ARG002
        """Find out before use whether a pooled connection still lives."""
        # Parameters by their places, so that their types can be told.
        return {"pool_pre_ping": True, "paramstyle": "qmark", **self.writing_options}

    def sign_in(self, url: URL, clock: Clock, cloud: Cloud) -> SignIn | None:
        """Use a token of Entra where the address has no password."""
        return sign_in_of(url, clock, cloud)

    def recognise(self, connection: Any) -> None:
        """Look for a version; SQLAlchemy would fail without one, and not say why."""
        cursor = connection.cursor()
        said = str(cursor.execute("SELECT @@VERSION").fetchone()[0])
        cursor.close()
        connection.commit()
        if not _VERSION.match(said):
            raise UnknownServer(self.title, said.partition("\n")[0][:_LONGEST_VERSION])

    def prepare(self, connection: Any, *, patience_seconds: float, reading: bool) -> None:
        """Wait for a lock only so long, and let a statement that fails undo itself and not the transaction.

        With XACT_ABORT a row that conflicts would end the whole transaction, and going back to a savepoint would fail.
        Who fails for good rolls back anyway. Who reads sees one picture, from the first query of a transaction to the
        last. A transaction cannot change to that once it has begun, and the driver begins one with each commit. So
        readers have connections of their own, and are told once.
        """
        level = "SNAPSHOT" if reading else "READ COMMITTED"
        cursor = connection.cursor()
        cursor.execute(
            f"SET LOCK_TIMEOUT {int(patience_seconds * 1000)}; SET XACT_ABORT OFF; SET NOCOUNT OFF;"
            f" SET TRANSACTION ISOLATION LEVEL {level}"
        )
        cursor.close()
        connection.commit()

    def typing(self) -> Typing | None:
        """Tell the types of all parameters.

        The driver asks the server for the type of a NULL, inside the transaction, and passes over the error if that
        fails. And it takes the type of any other value from the value, so that every length of a text would be another
        statement to the server.
        """
        return driver_types

    def beginning(self, info: dict[Any, Any], *, reading: bool) -> Iterator[str]:  # noqa: ARG002
        """Say nothing: the driver begins by itself, and readers have connections of their own."""
        return iter(())

    def now(self) -> ColumnElement[datetime]:
        """Ask for the time of this moment, in UTC."""
        return func.sysutcdatetime(type_=Instant)

    def table_of(self, columns: Columns, name: str, given: Mapping[str, Any] | None = None) -> FromClause:
        """Hand the rows over as JSON."""
        listed = ", ".join(read_from_json(one, kind) for one, kind in columns.items())
        typed = ", ".join(
            f"[{one}] {json_type(kind)} '$[{position}]'" for position, (one, kind) in enumerate(columns.items())
        )
        query = text(f"SELECT {listed} FROM OPENJSON(:{name}) WITH ({typed})")  # noqa: S608 - names are ours
        return (
            query.bindparams(parameter(name, String(), given))
            .columns(*(column(one, kind) for one, kind in columns.items()))
            .subquery()
        )

    def handed_over(self, columns: Columns, rows: Rows, name: str) -> dict[str, Any]:  # noqa: ARG002
        """Write the rows as JSON."""
        return {name: orjson.dumps([[_stored(value) for value in row] for row in rows]).decode()}

    def locking(self, statement: Select[Any], table: Table, *, skip_locked: bool = False) -> Select[Any]:
        """Lock the rows until the transaction ends; without the hints the query would lock nothing."""
        return statement.with_hint(table, _LOCK_WHAT_IS_FREE if skip_locked else _LOCK, "mssql")

    def insert_from(
        self,
        table: Table,
        values: Mapping[str, ColumnElement[Any]],
        source: FromClause,
        order_by: ColumnElement[Any] | None = None,
    ) -> Insert:
        """Number the rows in the order that is asked for."""
        query = select(*(value.label(name) for name, value in values.items())).select_from(source)
        return _inserted(table, values, query, order_by)

    def insert_missing(
        self,
        table: Table,
        values: Mapping[str, ColumnElement[Any]],
        source: FromClause,
        key: Iterable[str],
        order_by: ColumnElement[Any] | None = None,
    ) -> Insert:
        """Look first, and keep the gap locked until the row is there."""
        there = table.alias("there")
        same_key = [there.c[name] == values[name] for name in key]
        missing = ~exists().where(*same_key).select_from(there).with_hint(there, _LOCK_WITH_GAP, "mssql")
        cells = (value.label(name) for name, value in values.items())
        return _inserted(table, values, select(*cells).select_from(source).where(missing), order_by)

    def properties(self, connection: Connection) -> Iterator[Property]:
        """Ask for version, options and session."""
        return properties(connection)

    def checks(self, connection: Connection, table: str) -> dict[str, str]:
        """Ask the catalogue, which SQLAlchemy does not do; a condition that is switched off counts as missing."""
        found = connection.execute(
            text(
                "SELECT name, definition FROM sys.check_constraints"
                " WHERE parent_object_id = OBJECT_ID(:name) AND is_disabled = 0"
            ),
            {"name": table},
        )
        return {row.name: row.definition for row in found}

    def lock_schema(self, connection: Connection) -> None:
        """Take a lock that is let go when the transaction ends; the query makes sure that one has begun.

        Whether it was got is asked apart: the driver looks at the first result of a batch, and misses later errors.
        """
        connection.exec_driver_sql(
            "DECLARE @tables INT, @patience INT = @@LOCK_TIMEOUT; SELECT @tables = COUNT(*) FROM sys.tables;"
            " EXEC sp_getapplock @Resource = 'matoolkit schema', @LockMode = 'Exclusive', @LockTimeout = @patience"
        )
        held = connection.exec_driver_sql("SELECT APPLOCK_MODE('public', 'matoolkit schema', 'Transaction')").scalar()
        if held != "Exclusive":
            raise StoreBusy("another process is changing the tables")

    def roles(self, rights: Sequence[Rights], database: str) -> str:  # noqa: ARG002
        """Make roles, and users of Entra that are their members."""
        return mssql_roles(rights, str(self.data_schema))

    def error_for(self, fault: BaseException) -> type[StoreError]:
        """Go by the words of the driver and of the server."""
        return told_apart(str(fault))


def _inserted(table: Table, names: Iterable[str], query: Select[Any], order_by: ColumnElement[Any] | None) -> Insert:
    if order_by is not None:
        query = query.order_by(order_by).limit(_ALL)
    return table.insert().from_select(list(names), query, include_defaults=False)


def _stored(value: Any) -> Any:
    return as_utc(value).replace(tzinfo=None).isoformat() if isinstance(value, datetime) else value
