"""Statements that are built once and then run with other values.

SQLAlchemy takes longer to build most statements than a database takes to run them. A function under `prepared` builds
its statement once for each of its shapes, with parameters in the place of values; after that only values are handed on.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, final

from sqlalchemy import (
    ClauseElement,
    ColumnElement,
    Executable,
    FromClause,
    Insert,
    Select,
    Table,
    bindparam,
)
from sqlalchemy.types import TypeEngine

from matoolkit.clock import Clock
from matoolkit.store.dialect import Dialect
from matoolkit.store.dialect.questions import Columns, Filling, Rows
from matoolkit.store.dialect.types import Instant
from matoolkit.store.sql.recent import Recent
from matoolkit.store.sql.storable import storable_rows

# Names of parameters must not be names of columns: SQLAlchemy would take them for columns to write.
_ARGUMENT = "p_"
_GIVEN = "g_"
_NOW = "time_of_this_run"
# There are a few hundred shapes. Many more would mean that something that belongs to the values is in a shape.
MOST_SHAPES = 2_000

Arguments = ParamSpec("Arguments")


@final
class Named(dict[str, Any]):
    """Values by name: their names belong to the shape of a statement, and each value is a parameter of its own.

    It is a type of its own because a plain mapping can also be the values of one parameter.
    """


def given(name: str, kind: TypeEngine[Any]) -> ColumnElement[Any]:
    """Make a value of a guard or an expression that each run hands over by this name (see `Ready.with_parameters`).

    A guard is made once, long before its statement is built, and so cannot be an argument of the function that builds.
    """
    return bindparam(_GIVEN + name, type_=kind)


def name_of(parameter: str) -> str:
    """Return what the author of a statement calls a parameter."""
    return parameter.removeprefix(_GIVEN).removeprefix(_ARGUMENT)


class Drafting(ABC):
    """What it takes to build a statement: a transaction, or a draft that stands in for it."""

    def __init__(self, dialect: Dialect, clock: Clock | None) -> None:
        self.dialect = dialect
        self.clock = clock

    @abstractmethod
    def table_of(self, columns: Columns, rows: Rows) -> FromClause:
        """Make rows of values a table of a statement."""

    @abstractmethod
    def values_of(self, kind: TypeEngine[Any], values: Collection[Any]) -> FromClause:
        """Make values a table of a statement, with `value` for its only column."""

    @abstractmethod
    def now(self) -> ColumnElement[datetime]:
        """Return the database's clock as an expression, or the virtual clock that stands in for it."""

    def locking(self, statement: Select[Any], table: Table, *, skip_locked: bool = False) -> Select[Any]:
        """Let a query lock the rows of a table that it returns."""
        return self.dialect.locking(statement, table, skip_locked=skip_locked)

    def insert_missing(
        self,
        table: Table,
        values: Mapping[str, ColumnElement[Any]],
        source: FromClause,
        key: Iterable[str],
        order_by: ColumnElement[Any] | None = None,
    ) -> Insert:
        """Insert a row for each one of the source whose key the table does not have yet."""
        return self.dialect.insert_missing(table, values, source, key, order_by)


class Draft(Drafting):
    """Notes, while a statement is built, which of its parameters are tables."""

    def __init__(self, dialect: Dialect, clock: Clock | None) -> None:
        super().__init__(dialect, clock)
        # By the names of parameters: rows and lists of values go into one parameter, as JSON or as arrays, so that the
        # statement is the same for any number of them. Rows that are written may go into a temporary table instead.
        self.tables: dict[str, Columns] = {}
        self.lists: dict[str, Columns] = {}
        self.filled: dict[str, Columns] = {}

    def table_of(self, columns: Columns, rows: Any) -> FromClause:
        """Make the rows of every run a table of the statement."""
        self.tables[rows.key] = columns
        return self.dialect.table_of(columns, rows.key)

    def rows_of(self, columns: Columns, rows: Any) -> FromClause:
        """Make the rows of every run, which are written, a table of the statement."""
        to_fill = self.dialect.table_to_fill(columns)
        if to_fill is None:
            return self.table_of(columns, rows)
        self.filled[rows.key] = columns
        return to_fill

    def values_of(self, kind: TypeEngine[Any], values: Any) -> FromClause:
        """Make the values of every run a table of the statement."""
        self.lists[values.key] = columns = {"value": kind}
        return self.dialect.table_of(columns, values.key)

    def now(self) -> ColumnElement[datetime]:
        """Return the database's clock, or a parameter for the virtual one."""
        return self.dialect.now() if self.clock is None else bindparam(_NOW, type_=Instant)


class Ready(NamedTuple):
    """A statement with the values of this run."""

    plan: "Plan"
    values: dict[str, Any]
    filling: Filling | None = None

    def with_parameters(self, values: Mapping[str, Any]) -> "Ready":
        """Hand over what guards and expressions are `given`; what none of them asks for is passed by."""
        for name, value in values.items():
            self.values[_GIVEN + name] = value
        return self


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A statement that was built once."""

    statement: Executable
    draft: Draft
    # Conditions of a shape go by their numbers (see `_identity`), and Python gives the number of an object that is gone
    # to another one. So they live as long as the plan does, which is as long as its key is in the cache.
    shape: Mapping[str, Any]

    def ready(self, clock: Clock | None, given: Mapping[str, Any]) -> Ready:
        """Return it with the values of a run."""
        parameters: dict[str, Any] = {}
        filling: Filling | None = None
        draft = self.draft
        for name, value in given.items():
            if name in draft.lists:
                columns, rows = draft.lists[name], [(one,) for one in value]
            elif name in draft.tables:
                columns, rows = draft.tables[name], value
            elif name in draft.filled:
                columns = draft.filled[name]
                filling = draft.dialect.filling(columns, storable_rows(columns, value))
                continue
            else:
                parameters[name] = value
                continue
            parameters |= draft.dialect.handed_over(columns, storable_rows(columns, rows), name)
        if clock is not None:
            parameters[_NOW] = clock.now()
        return Ready(self, parameters, filling)


def prepared(
    build: Callable[Concatenate[Draft, Arguments], Executable],
) -> Callable[Concatenate[Drafting, Arguments], Ready]:
    """Let a function build its statement once for each shape.

    Its arguments by position are values: it finds a parameter in the place of each, or of each value of a `Named`.
    Those by keyword are the shape: words, tables, columns, limits (SQL Server wants a number there), conditions.
    Conditions are told apart by what they are, not by what they say, so they are made once and for all.
    """
    accepted = list(inspect.signature(build).parameters.values())[1:]
    names = [_ARGUMENT + one.name for one in accepted if one.kind is not one.KEYWORD_ONLY]
    known: Recent[Any, Plan] = Recent(f"shapes of {build.__qualname__}", MOST_SHAPES)

    @wraps(build)
    def ready(tx: Drafting, /, *values: Arguments.args, **shape: Arguments.kwargs) -> Ready:
        given: dict[str, Any] = {}
        keys: tuple[Any, ...] = ()
        value: Any
        for name, value in zip(names, values, strict=False):
            if type(value) is Named:
                # A list of names ends with what no name is: two lists in a row are not one.
                keys += (*value, None)
                given |= {f"{name}_{key}": one for key, one in value.items()}
            else:
                given[name] = value
        # A virtual clock is a parameter of the statement, the database's own is a function in it: two statements.
        key = (tx.dialect.name, tx.clock is None, keys, *shape, *map(_identity, shape.values()))
        found = known.get(key)
        if found is None:
            _check_places(names[len(values) :], shape)
            found = known.add(key, _built(build, tx, map(_placeholder, names, values), shape))
        return found.ready(tx.clock, given)

    return ready


def _check_places(names: Collection[str], shape: Mapping[str, Any]) -> None:
    # Taken for a part of the shape, each value would have a statement of its own.
    by_keyword = [name for name in map(name_of, names) if name in shape]
    if by_keyword:
        raise TypeError(f"values are handed over by position: {', '.join(by_keyword)}")


def _built(build: Callable[..., Executable], tx: Drafting, values: Iterable[Any], shape: Mapping[str, Any]) -> Plan:
    draft = Draft(tx.dialect, tx.clock)
    return Plan(build(draft, *values, **shape), draft, shape)


def _placeholder(name: str, value: Any) -> Any:
    if type(value) is Named:
        return Named({key: bindparam(f"{name}_{key}") for key in value})
    return bindparam(name)


def _identity(part: Any) -> Any:
    # To compare two conditions with == makes a third one, so a condition goes by its number.
    if isinstance(part, ClauseElement):
        return id(part)
    return tuple(map(_identity, part)) if isinstance(part, tuple) else part
