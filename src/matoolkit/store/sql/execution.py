"""Statements as SQLAlchemy compiled them, run on the driver's own cursor."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, Executable
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import StatementError
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeEngine

from matoolkit.errors import StoreReadOnly
from matoolkit.store.dialect.questions import Filling, Typing
from matoolkit.store.sql.driver import run, run_many, run_only
from matoolkit.store.sql.mapping import Arrangement, arrangement
from matoolkit.store.sql.prepared import MOST_SHAPES, Plan, Ready, name_of
from matoolkit.store.sql.recent import Recent
from matoolkit.store.sql.storable import storable_value

# The option under which an engine keeps what was compiled for it, for all its stores.
COMPILED = "matoolkit_compiled"
# The option under which an engine keeps the class of what runs its statements.
RUNNER = "matoolkit_runner"
# The option of an engine whose transactions only read.
READING = "matoolkit_reading"
# The option of such an engine if its database would not refuse to write in them.
GUARDED = "matoolkit_guarded"
# The option under which an engine keeps what tells the types of parameters to its driver, if the driver asks for it.
TYPING = "matoolkit_typing"
_ROWS_AT_ONCE = 10_000
_ONLY_READS = ("SELECT", "WITH")

RowT = TypeVar("RowT")
TakenT = TypeVar("TakenT")
Process = Callable[[Any], Any]
Readers = Sequence[tuple[int, Process]]
# Is told what is about to be run, with its parameters.
Watcher = Callable[[str, Any], None]


def no_statements() -> "Recent[Plan, Compiled]":
    """Make what an engine keeps under `COMPILED`."""
    return Recent("compiled statements", MOST_SHAPES)


class Runner:
    """Runs statements on a connection."""

    def __init__(self, connection: Connection, watchers: Iterable[Watcher]) -> None:
        self.connection = connection
        self._watchers = watchers
        options = connection.get_execution_options()
        self._known: Recent[Plan, Compiled] = options[COMPILED]
        self.is_guarded = GUARDED in options
        self.typing: Typing | None = options.get(TYPING)
        self.has_written = False

    def changed(self, statement: Executable | Ready) -> int:
        """Run a statement and say how many rows it changed."""
        return self.run(statement, self.compiled(statement), _row_count)

    def rows(self, make: Callable[..., RowT], statement: Executable | Ready, given: Mapping[str, Any]) -> list[RowT]:
        """Run a statement and make a record of each row it returns and of what is given for all of them."""
        compiled = self.compiled(statement)
        arranged = compiled.arrangement(make, tuple(given))

        def made(cursor: Any) -> list[RowT]:
            found: list[RowT] = []
            readers = compiled.readers(cursor)
            # In slices, so that a million rows are not in memory twice.
            while some := cursor.fetchmany(_ROWS_AT_ONCE):
                # Column by column: one call of `map` reads a column, and another one makes all the records.
                columns: list[Iterable[Any]] = list(zip(*some, strict=True))
                for place, read in readers:
                    columns[place] = map(read, columns[place])
                found += map(make, *(columns if arranged is None else arranged.of(columns, given)))
            return found

        return self.run(statement, compiled, made)

    def values(self, statement: Executable | Ready) -> list[Any]:
        """Run a statement and return the first column of what it returns."""
        compiled = self.compiled(statement)

        def first_column(cursor: Any) -> list[Any]:
            values = [row[0] for row in cursor.fetchall()]
            for place, read in compiled.readers(cursor):
                if place == 0:
                    return list(map(read, values))
            return values

        return self.run(statement, compiled, first_column)

    def compiled(self, statement: Executable | Ready) -> "Compiled":
        """Return a statement as the driver takes it; one that was prepared is compiled once."""
        if not isinstance(statement, Ready):
            return Compiled(statement, self.connection.dialect)
        compiled = self._known.get(statement.plan)
        if compiled is None:
            compiled = Compiled(statement.plan.statement, self.connection.dialect)
            self._known.add(statement.plan, compiled)
        return compiled

    def run(self, statement: Executable | Ready, compiled: "Compiled", take: Callable[[Any], TakenT]) -> TakenT:
        """Run a statement and take what is wanted from the cursor."""
        if isinstance(statement, Ready):
            _plan, given, filling = statement
            text, parameters, kinds = compiled.bound(given)
            if filling is not None:
                self.fill(filling)
        else:
            text, parameters, kinds = compiled.bound({})
        if self.is_guarded:
            self.require_reading(text)
        for watch in self._watchers:
            watch(text, parameters)
        types = None if self.typing is None else self.typing(kinds, parameters)
        found, count = run(self.connection, text, parameters, take, types)
        # Some drivers count the rows of a query too, which says nothing about whether the database can be written to.
        if count > 0 and not text.startswith("SELECT"):
            self.has_written = True
        return found

    def require_reading(self, text: str) -> None:
        """Refuse a statement that may write."""
        if not text.lstrip().upper().startswith(_ONLY_READS):
            raise StoreReadOnly("a transaction that was begun to read may not write")

    def fill(self, filling: Filling) -> None:
        """Put the rows that a statement writes where it looks for them."""
        run_only(self.connection, filling.empty)
        run_many(self.connection, filling.fill, filling.rows)


class _Form(NamedTuple):
    """A text, and for each of its parameters which value it is and how that is made ready for the driver."""

    text: str
    parameters: Sequence[tuple[str, Process | None]]
    names: Sequence[str] | None  # of the parameters, unless they go by their places
    kinds: Sequence[TypeEngine[Any]]

    def bound(self, values: Mapping[str, Any]) -> tuple[str, Any, Sequence[TypeEngine[Any]]]:
        cells = [
            storable_value(values[key] if process is None else process(values[key])) for key, process in self.parameters
        ]
        return self.text, tuple(cells) if self.names is None else dict(zip(self.names, cells, strict=True)), self.kinds


class Compiled:
    """A statement as the driver takes it."""

    def __init__(self, statement: Executable, dialect: Dialect) -> None:
        self._dialect = dialect
        columns = getattr(statement, "exported_columns", None)
        self._names: tuple[str, ...] = tuple(columns.keys()) if columns else ()
        self._kinds: list[TypeEngine[Any]] = [column.type for column in columns] if columns else []
        self._arrangements: dict[Any, Arrangement | None] = {}
        self._readers: Readers | None = None
        self._compiled = statement.compile(dialect=dialect)  # type: ignore[attr-defined] # all that we run can
        self._processes: dict[str, Process] = {}
        self._values: dict[str, Any] = {}  # that stand in the statement: a constant of a guard, for instance
        self._form: _Form | None = None
        if not isinstance(self._compiled, SQLCompiler):
            self._form = _Form(self._compiled.string, (), None if dialect.positional else (), ())  # it makes a table
            return
        parameters = self._compiled.bind_names
        self._types = {name: parameter.type for parameter, name in parameters.items()}
        for parameter, name in parameters.items():
            process = parameter.type.dialect_impl(dialect).bind_processor(dialect)
            if process is not None:
                self._processes[name] = process
        # Lists of values, and limits on SQL Server, are written into the text when the values are known.
        if not (self._compiled.literal_execute_params or self._compiled.post_compile_params):
            self._values = {parameter.key: parameter.value for parameter in parameters if not parameter.required}
            keys = {name: parameter.key for parameter, name in parameters.items()}
            self._form = self._formed(
                self._compiled.string, self._compiled.positiontup, keys, self._processes, self._types
            )

    def bound(self, given: Mapping[str, Any]) -> tuple[str, Any, Sequence[TypeEngine[Any]]]:
        """Return the text, its parameters for the values of this run, and their types."""
        try:
            if self._form is not None:
                return self._form.bound({**self._values, **given} if self._values else given)
            written = self._compiled.construct_expanded_state(given, escape_names=False)
            keys, processes = {name: name for name in written.parameters}, {**self._processes, **written.processors}
            types = self._types | {
                name: self._types[whole] for whole, names in written.parameter_expansion.items() for name in names
            }
            form = self._formed(written.statement, written.positiontup, keys, processes, types)
            return form.bound(written.parameters)
        except Exception as fault:
            self._check_all_given(given)
            raise StatementError(str(fault), None, None, fault, hide_parameters=True) from fault

    def _check_all_given(self, given: Mapping[str, Any]) -> None:
        wanted = {parameter.key for parameter in self._compiled.bind_names if parameter.required}
        if missing := sorted(map(name_of, wanted - given.keys())):
            raise TypeError(f"a statement has no value for {', '.join(map(repr, missing))}")

    def readers(self, cursor: Any) -> Readers:
        """Return what makes our values of the driver's, for those columns that need it."""
        # SQLAlchemy's types ask for the driver's type of the column, which is known only once the statement has run.
        if self._readers is None:
            columns = zip(self._kinds, cursor.description, strict=True) if self._kinds else ()
            processes = [
                kind.dialect_impl(self._dialect).result_processor(self._dialect, told[1]) for kind, told in columns
            ]
            self._readers = [(place, process) for place, process in enumerate(processes) if process is not None]
        return self._readers

    def arrangement(self, make: Callable[..., Any], given: tuple[str, ...]) -> Arrangement | None:
        """Return how its columns become what a record takes, which is worked out once for each record."""
        try:
            return self._arrangements[make, given]
        except KeyError:
            found = arrangement(make, self._names, given)
        # A function in place is made anew for every run, and would be kept for ever.
        if isinstance(make, type):
            self._arrangements[make, given] = found
        return found

    def _formed(
        self,
        text: str,
        places: Sequence[str] | None,
        keys: Mapping[str, str],
        processes: Mapping[str, Process],
        types: Mapping[str, TypeEngine[Any]],
    ) -> _Form:
        names = keys if places is None else places
        parameters = [(keys[name], processes.get(name)) for name in names]
        # A driver that takes parameters by name refuses some characters in names, which SQLAlchemy has replaced.
        escaped = self._compiled.escaped_bind_names
        by_name = [escaped.get(name, name) for name in keys] if places is None else None
        return _Form(text, parameters, by_name, [types[name] for name in names])


def _row_count(cursor: Any) -> int:
    count: int = cursor.rowcount
    return count
