"""The questions that the store asks of a database."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, NamedTuple, Protocol

from sqlalchemy import (
    BindParameter,
    Boolean,
    ColumnElement,
    Connection,
    Executable,
    FromClause,
    Insert,
    Integer,
    Select,
    Table,
    bindparam,
    inspect,
    select,
)
from sqlalchemy.engine import URL
from sqlalchemy.types import TypeEngine

from matoolkit.clock import Clock
from matoolkit.clouds import Cloud
from matoolkit.errors import RolesNotSupported, StoreError
from matoolkit.store.dialect.types import Instant

# Names and types of the columns of rows that are handed to the database as one parameter.
Columns = Mapping[str, TypeEngine[Any]]
Rows = Sequence[Sequence[Any]]
# Makes of the types of parameters and their values what a driver is told about their types.
Typing = Callable[[Sequence[TypeEngine[Any]], Sequence[Any]], Sequence[Any]]


class Filling(NamedTuple):
    """Rows, and the statements that put them into a table of the connection's own: one before all, one for each."""

    empty: str
    fill: str
    rows: Rows


@dataclass(frozen=True, slots=True)
class Rights:
    """What a part of the system may do: verbs by table, and what it does to data tables.

    The identity is the name under which it signs in, if it is known. `numbered` tables number their rows.
    """

    role: str
    identity: str | None
    tables: Mapping[str, tuple[str, ...]]
    numbered: frozenset[str]
    deploys: bool
    makes_data_tables: bool
    reads_data_tables: bool

    @property
    def uses_data_tables(self) -> bool:
        """Whether it does anything with data tables."""
        return self.makes_data_tables or self.reads_data_tables


class SignIn(Protocol):
    """Opens connections that prove who they are by something that ends after a while."""

    @property
    def url(self) -> URL:
        """The address without what only the sign-in needs."""

    def connect(self, connect: Callable[..., Any], info: dict[Any, Any]) -> Any:
        """Open a connection of the driver with `connect`; `info` belongs to it and lives as long."""

    def has_ended(self, info: Mapping[Any, Any]) -> bool:
        """Tell whether a connection has lived longer than its proof."""


class Property(NamedTuple):
    """What a server says of itself, and what to do about it if it will not do."""

    name: str
    said: str
    todo: str = ""


class Dialect(ABC):
    """One database's answers."""

    name: ClassVar[str]
    title: ClassVar[str]
    driver: ClassVar[str]
    extra: ClassVar[str]
    is_file: ClassVar[bool] = False
    can_listen: ClassVar[bool] = False
    # Whether those who only read have connections of their own, prepared for it, because a transaction cannot be told.
    reads_apart: ClassVar[bool] = False
    # Whether rows that are handed over are numbered in their order, without being told to sort them.
    keeps_order: ClassVar[bool] = True
    # Where new data tables are made, so that the scheduler need not be allowed to make tables anywhere else.
    data_schema: ClassVar[str | None] = "matoolkit_data"
    # What SQLAlchemy's dialect must be told to write statements alike with and without a connection.
    writing_options: ClassVar[Mapping[str, Any]] = {}

    @abstractmethod
    def engine_options(self, url: URL) -> dict[str, Any]:
        """Return what the engine needs to know when it is made."""

    def sign_in(self, url: URL, clock: Clock, cloud: Cloud) -> SignIn | None:  # noqa: ARG002
        """Return how connections sign in, if the address does not say it all."""
        return None

    def recognise(self, connection: Any) -> None:  # noqa: B027
        """Refuse a server that is not what its address promises; asked on the first connection of the driver."""

    @abstractmethod
    def prepare(self, connection: Any, *, patience_seconds: float, reading: bool) -> None:
        """Set up a fresh connection of the driver, which waits that long for a lock, and perhaps only reads."""

    @abstractmethod
    def beginning(self, info: dict[Any, Any], *, reading: bool) -> Iterator[str]:
        """Say what begins a transaction, if the driver does not begin it as we need it.

        `info` belongs to the connection and lives as long; each statement is run before the next one is asked for.
        """

    def typing(self) -> Typing | None:
        """Return what tells the driver the types of parameters, if it would ask the server for the type of a NULL."""
        return None

    @abstractmethod
    def now(self) -> ColumnElement[datetime]:
        """Return the expression that asks the database for the time."""

    @abstractmethod
    def table_of(self, columns: Columns, name: str, given: Mapping[str, Any] | None = None) -> FromClause:
        """Make rows a table of a statement, in a fixed number of parameters that begin with a name.

        The parameters have the values that are given, or get them whenever the statement runs.
        """

    @abstractmethod
    def handed_over(self, columns: Columns, rows: Rows, name: str) -> dict[str, Any]:
        """Return what the parameters of such a table are for these rows."""

    def table_to_fill(self, columns: Columns) -> FromClause | None:  # noqa: ARG002
        """Return a table of the connection's own, if that is a quicker way to hand over rows that are written."""
        return None

    def filling(self, columns: Columns, rows: Rows) -> Filling:
        """Return how that table is filled before a statement runs."""
        raise NotImplementedError(f"{self.title} takes all rows as parameters")

    @abstractmethod
    def locking(self, statement: Select[Any], table: Table, *, skip_locked: bool = False) -> Select[Any]:
        """Let a query lock the rows of a table that it returns, or pass by those that are locked."""

    def only_checked(self, condition: ColumnElement[bool]) -> ColumnElement[bool]:
        """Let a condition be checked on rows that are found by their ids, and no rows be found by it."""
        return condition

    def insert_from(
        self,
        table: Table,
        values: Mapping[str, ColumnElement[Any]],
        source: FromClause,
        order_by: ColumnElement[Any] | None = None,
    ) -> Insert:
        """Insert a row for each row of a source."""
        query = select(*(value.label(name) for name, value in values.items())).select_from(source)
        return table.insert().from_select(list(values), query.order_by(order_by), include_defaults=False)

    @abstractmethod
    def insert_missing(
        self,
        table: Table,
        values: Mapping[str, ColumnElement[Any]],
        source: FromClause,
        key: Iterable[str],
        order_by: ColumnElement[Any] | None = None,
    ) -> Insert:
        """Insert a row for each one of the source whose key the table does not have yet."""

    def notification(self, word: ColumnElement[str]) -> Executable:
        """Return the statement by which a commit wakes other processes, if they can listen."""
        raise NotImplementedError(f"{self.title} cannot notify other processes")

    def listen(self, connection: Any, seconds: float) -> Iterable[str]:  # noqa: ARG002
        """Wait on a connection of the driver for words that commits of other processes send."""
        return ()

    def free_to_rebuild(self, connection: Connection) -> AbstractContextManager[None]:  # noqa: ARG002
        """Allow tables to be rebuilt while others refer to them, where altering one takes that."""
        return nullcontext()

    @abstractmethod
    def properties(self, connection: Connection) -> Iterator[Property]:
        """Ask which version the server has, and how it is set up."""

    def checks(self, connection: Connection, table: str) -> dict[str, str]:
        """Return the conditions that a table checks its rows with, by their names."""
        found = inspect(connection).get_check_constraints(table)
        return {str(one["name"]): one["sqltext"] for one in found if one["name"]}

    @abstractmethod
    def lock_schema(self, connection: Connection) -> None:
        """Let only one process at a time change the tables, until its transaction ends."""

    def roles(self, rights: Sequence[Rights], database: str) -> str:  # noqa: ARG002
        """Write the SQL that creates roles and users with these rights in a database."""
        raise RolesNotSupported(self.title)

    @abstractmethod
    def error_for(self, fault: BaseException) -> type[StoreError]:
        """Tell which of our errors an error of the driver is."""


def parameter(name: str, kind: TypeEngine[Any], given: Mapping[str, Any] | None) -> BindParameter[Any]:
    """Make a parameter that has its value, or one that gets it whenever the statement runs."""
    return bindparam(name, type_=kind) if given is None else bindparam(name, given[name], kind, unique=True)


def is_text(column: TypeEngine[Any]) -> bool:
    """Tell whether values of a type are handed over as text."""
    return not isinstance(column, Integer | Boolean | Instant)


def column_lists(columns: Columns, rows: Rows) -> dict[str, list[Any]]:
    """Turn rows into one list for each column."""
    lists = [list(values) for values in zip(*rows, strict=True)] if rows else [[] for _ in columns]
    return dict(zip(columns, lists, strict=True))
