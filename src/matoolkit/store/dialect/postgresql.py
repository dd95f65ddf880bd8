"""PostgreSQL, through psycopg 3."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Connection,
    DateTime,
    Executable,
    FromClause,
    Insert,
    Integer,
    Select,
    Table,
    Text,
    column,
    false,
    func,
    select,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.engine import URL
from sqlalchemy.types import TypeEngine

from matoolkit.clock import as_utc
from matoolkit.errors import (
    RowConflict,
    SignInRefused,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from matoolkit.store.dialect.postgresql_roles import postgresql_roles
from matoolkit.store.dialect.questions import Columns, Dialect, Property, Rights, Rows, column_lists, parameter
from matoolkit.store.dialect.types import Instant

# By SQLSTATE; an entry of two characters stands for its whole class.
_ERRORS: dict[str, type[StoreError]] = {
    "08": StoreUnavailable,
    "57P": StoreUnavailable,
    "53": StoreUnavailable,
    "58": StoreUnavailable,
    "28": SignInRefused,
    "3D000": StoreUnavailable,
    "53100": StoreFull,
    "55P03": StoreBusy,
    "40": StoreBusy,
    "57014": StoreBusy,
    "25006": StoreReadOnly,
    "42501": StoreReadOnly,
    "23": RowConflict,
    "22001": RowConflict,
}
_POOL = {"pool_pre_ping": True, "pool_size": 10, "max_overflow": 20}
_CHANNEL = "matoolkit"
_UPGRADING = 7_203_118  # the number under which processes meet that want to change the tables


class PostgreSQL(Dialect):
    """PostgreSQL's answers."""

    name = "postgresql"
    title = "PostgreSQL"
    driver = "postgresql+psycopg"
    extra = "postgres"
    can_listen = True

    def engine_options(self, url: URL) -> dict[str, Any]:
        """Keep connections, find out before use whether one still lives, and do not wait long for a new one."""
        return _POOL if "connect_timeout" in url.query else _POOL | {"connect_args": {"connect_timeout": 10}}

    def prepare(self, connection: Any, *, patience_seconds: float, reading: bool) -> None:  # noqa: ARG002
        """Wait for a lock only so long, tell times in UTC, and hand arrays over in binary, where nothing is escaped."""
        from psycopg.types.array import ListBinaryDumper

        connection.adapters.register_dumper(list, ListBinaryDumper)
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {int(patience_seconds * 1000)}")
            # In the zone of the server the first and the last times would be in years that Python does not have.
            cursor.execute("SET TIME ZONE 'UTC'")
        connection.commit()

    def beginning(self, info: dict[Any, Any], *, reading: bool) -> Iterator[str]:  # noqa: ARG002
        """Give a transaction that only reads one picture of the data from its first query to its last."""
        if reading:
            yield "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"

    def now(self) -> ColumnElement[datetime]:
        """Ask for the time of this moment, not of the transaction's beginning."""
        return func.clock_timestamp(type_=Instant)

    def table_of(self, columns: Columns, name: str, given: Mapping[str, Any] | None = None) -> FromClause:
        """Hand the rows over as one array for each column."""
        arrays = [parameter(f"{name}_{one}", ARRAY(_element_type(kind)), given) for one, kind in columns.items()]
        rows = func.unnest(*arrays).table_valued(*(column(one) for one in columns)).render_derived()
        # The columns of a function have no types of their own; the query around it gives them ours.
        return select(*(type_coerce(rows.c[one], kind).label(one) for one, kind in columns.items())).subquery()

    def handed_over(self, columns: Columns, rows: Rows, name: str) -> dict[str, Any]:
        """Make an array of each column."""
        lists = column_lists(columns, rows)
        for one, kind in columns.items():
            if isinstance(kind, Instant):
                lists[one] = [None if value is None else as_utc(value) for value in lists[one]]
        return {f"{name}_{one}": values for one, values in lists.items()}

    def locking(self, statement: Select[Any], table: Table, *, skip_locked: bool = False) -> Select[Any]:
        """Lock the rows until the transaction ends."""
        return statement.with_for_update(of=table, skip_locked=skip_locked)

    def only_checked(self, condition: ColumnElement[bool]) -> ColumnElement[bool]:
        """Hide it from the planner, whose statistics are older than a phase that has just begun.

        It would search by the status and expect few rows. It would find a whole batch, and compare each row with every
        id.
        """
        return func.coalesce(condition, false())

    def insert_missing(
        self,
        table: Table,
        values: Mapping[str, ColumnElement[Any]],
        source: FromClause,
        key: Iterable[str],
        order_by: ColumnElement[Any] | None = None,
    ) -> Insert:
        """Skip rows that exist, and rows that another transaction inserts at the same time."""
        cells = (value.label(name) for name, value in values.items())
        query = select(*cells).select_from(source).order_by(order_by)
        return (
            insert(table)
            .from_select(list(values), query, include_defaults=False)
            .on_conflict_do_nothing(index_elements=list(key))
        )

    def notification(self, word: ColumnElement[str]) -> Executable:
        """Notify listening processes when the transaction commits."""
        return select(func.pg_notify(_CHANNEL, type_coerce(word, Text)))

    def listen(self, connection: Any, seconds: float) -> Iterable[str]:
        """Listen for that long, or until something was heard."""
        import psycopg

        try:
            if not connection.autocommit:
                connection.autocommit = True
                connection.execute(f"LISTEN {_CHANNEL}")
            return [heard.payload for heard in connection.notifies(timeout=seconds, stop_after=1)]
        except psycopg.Error as fault:
            raise StoreUnavailable("the connection that listens is broken") from fault

    def properties(self, connection: Connection) -> Iterator[Property]:
        """Ask for the version, the encoding, and whether this is the primary."""
        settings = ("server_version", "server_encoding", "transaction_read_only")
        version, encoding, read_only = connection.execute(select(*map(func.current_setting, settings))).one()
        yield Property("version", f"PostgreSQL {version}")
        yield Property("encoding", encoding, "" if encoding == "UTF8" else "make a new database with ENCODING 'UTF8'")
        todo = "name the primary in MATOOLKIT_DATABASE_URL, and let the role write" if read_only == "on" else ""
        yield Property("read only", read_only, todo)

    def lock_schema(self, connection: Connection) -> None:
        """Take a lock that is let go when the transaction ends."""
        connection.execute(select(func.pg_advisory_xact_lock(_UPGRADING)))

    def roles(self, rights: Sequence[Rights], database: str) -> str:
        """Make roles that sign in."""
        return postgresql_roles(rights, str(self.data_schema), database)

    def error_for(self, fault: BaseException) -> type[StoreError]:
        """Go by the SQLSTATE; an error of the connection itself has none."""
        state = getattr(fault, "sqlstate", None)
        if state is None:
            lost = type(fault).__name__ in {"OperationalError", "ConnectionTimeout"}
            return StoreUnavailable if lost else StoreError
        found = (_ERRORS[state[:length]] for length in (5, 3, 2) if state[:length] in _ERRORS)
        return next(found, StoreError)


def _element_type(kind: TypeEngine[Any]) -> TypeEngine[Any]:
    # A cast to VARCHAR(n) would cut what is too long without a word; TEXT lets the column refuse it.
    if isinstance(kind, Integer):
        return BigInteger()
    if isinstance(kind, Boolean):
        return Boolean()
    return DateTime(timezone=True) if isinstance(kind, Instant) else Text()
