"""Every statement of the store, compiled for SQL Server.

No server is needed for it: a stand-in for the connection compiles what it is given and answers with a made-up row.
`python -m tests.golden.tsql` writes the files anew after a change that was meant.
"""

import importlib
import inspect
import pkgutil
import types
import typing
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from io import StringIO
from pathlib import Path
from typing import Any

from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import BindParameter, Boolean, Integer, make_url
from sqlalchemy.dialects import mssql
from sqlalchemy.sql import visitors
from sqlalchemy.types import TypeEngine

from matoolkit import store
from matoolkit.domain.moves import Move
from matoolkit.domain.moves import batch as batch_moves
from matoolkit.domain.moves import phase as phase_moves
from matoolkit.domain.moves.step import StepMove
from matoolkit.domain.states import BatchStatus, PhaseStatus
from matoolkit.ids import Kind
from matoolkit.store import Transaction
from matoolkit.store.datanames import DataTableName
from matoolkit.store.datatables import DataRow, DataTable, open_data_table
from matoolkit.store.dialect.mssql import SqlServer
from matoolkit.store.dialect.types import Instant, OneOf
from matoolkit.store.queue import NewQueued
from matoolkit.store.roles import PARTS, roles_script
from matoolkit.store.sql.execution import COMPILED, Compiled, Runner, no_statements
from matoolkit.store.sql.prepared import Ready
from matoolkit.store.upgrade import upgrade_script

FOLDER = Path(__file__).parent
STATEMENTS, MIGRATIONS, ROLES = (FOLDER / f"{name}.sql" for name in ("statements", "migrations", "roles"))
HOSTILE = "x'; DROP TABLE batches; --]\""
NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)

# These make statements for others to run, take no transaction of a caller, or have nothing to say to SQL Server.
NOT_STATEMENTS = {
    "store.upgrade",
    "store.listening",
    "store.moves.make_alike",
    "store.moves.make_each",
}


class Answer:
    """A cursor with the answer of the stand-in: one made-up row."""

    rowcount = 1

    def __init__(self, row: tuple[Any, ...]) -> None:
        self._rows = [row] if row else []
        self.description = [(None, None)] * len(row)

    def fetchmany(self, _size: int) -> list[tuple[Any, ...]]:
        found, self._rows = self._rows, []
        return found

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows


class CompilingConnection:
    """Stands in for a connection and keeps what it is asked to execute, as T-SQL."""

    def __init__(self) -> None:
        self.dialect = mssql.dialect(**SqlServer.writing_options)  # type: ignore[no-untyped-call]
        self.dialect._supports_offset_fetch = True  # noqa: SLF001 - as a connected dialect finds out by itself
        self.engine = types.SimpleNamespace(url=make_url("mssql://server/state"))
        self.sent: list[str] = []

    def get_execution_options(self) -> dict[str, Any]:
        return {COMPILED: no_statements()}

    def exec_driver_sql(self, statement: str) -> None:
        self.sent.append(statement)


class CompilingRunner(Runner):
    """Compiles what it is to run, and answers with what is wanted of a made-up row."""

    def __init__(self, connection: CompilingConnection) -> None:
        super().__init__(connection, ())  # type: ignore[arg-type]
        self._sent = connection.sent

    def compiled(self, statement: Any) -> Compiled:
        built: Any = statement.plan.statement if isinstance(statement, Ready) else statement
        if isinstance(statement, Ready):
            # Where SQL Server wants a number and no parameter, the compiler asks for its value.
            for part in visitors.iterate(built):
                if isinstance(part, BindParameter) and part.key in statement.values:
                    part.value, part.required = statement.values[part.key], False
        written = built.compile(dialect=self.connection.dialect, compile_kwargs={"render_postcompile": True})
        self._sent.append(str(written).strip())
        return super().compiled(statement)

    def run(self, statement: Any, _compiled: Any, take: Callable[[Any], Any]) -> Any:
        built: Any = statement.plan.statement if isinstance(statement, Ready) else statement
        return take(Answer(tuple(made_up(column.type) for column in getattr(built, "exported_columns", ()))))


class CompilingTransaction(Transaction):
    """A transaction that only compiles."""

    def __init__(self) -> None:
        self.connection = CompilingConnection()
        super().__init__(CompilingRunner(self.connection), SqlServer())

    def has_table(self, name: str, schema: str | None = None) -> bool:  # noqa: ARG002
        return name.endswith("_there")

    def has_column(self, table: str, name: str, schema: str | None = None) -> bool:  # noqa: ARG002 - a table of an older release
        return False

    def operations(self) -> Operations:
        script = StringIO()
        context = MigrationContext.configure(
            dialect=self.connection.dialect, opts={"as_sql": True, "output_buffer": script}
        )
        operations = Operations(context)
        add_column = operations.add_column

        def keep(*arguments: Any, schema: str | None) -> None:
            add_column(*arguments, schema=schema)
            self.connection.sent.append(script.getvalue().replace("GO", "").strip().rstrip(";"))

        operations.add_column = keep  # type: ignore[method-assign, assignment]
        return operations


def made_up(kind: TypeEngine[Any]) -> Any:
    if isinstance(kind, Instant):
        return NOON
    if isinstance(kind, OneOf):
        return next(iter(kind.choices))
    return False if isinstance(kind, Boolean) else 0 if isinstance(kind, Integer) else "ffff"


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Find every function of the store that takes a transaction."""
    for found in pkgutil.iter_modules(store.__path__):
        name = f"store.{found.name}"
        if found.ispkg or name in NOT_STATEMENTS:
            continue
        module = importlib.import_module(f"matoolkit.{name}")
        for function in vars(module).values():
            if _is_statement_of(module.__name__, function) and f"{name}.{function.__name__}" not in NOT_STATEMENTS:
                yield f"{name}.{function.__name__}", function


def _is_statement_of(module: str, thing: Any) -> bool:
    if not inspect.isfunction(thing) or thing.__module__ != module or thing.__name__.startswith("_"):
        return False
    return "tx" in inspect.signature(thing).parameters


def arguments_for(function: Callable[..., Any], tx: Transaction) -> dict[str, Any]:
    hints = typing.get_type_hints(function)
    given = {name: sample(hints[name], name) for name in inspect.signature(function).parameters if name != "tx"}
    return {"tx": tx} | given


def sample(kind: Any, name: str = "") -> Any:
    """Make up a value of a type."""
    if kind in SAMPLES:
        return SAMPLES[kind](name)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return sample(next(one for one in inner if one is not type(None)), name)
    if origin in (Collection, Sequence):
        return [sample(inner[0], name)]
    if is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return kind(**{field.name: sample(hints[field.name], field.name) for field in fields(kind)})  # type: ignore[operator]
    assert issubclass(kind, StrEnum), kind
    return next(iter(kind))


_PLACE = DataTableName("runbook_wave_v1", SqlServer.data_schema)


def _data_table(_: str) -> DataTable:
    return open_data_table(CompilingTransaction(), _PLACE, ["Email", "Aliases"])


SAMPLES: dict[Any, Callable[[str], Any]] = {
    int: lambda _: 7,
    str: lambda name: {
        "name": "runbook_wave_v1_there",
        "sources": "Email",
        "hold_json": "{}",
        "schema": "matoolkit_data",
    }.get(name, "text"),
    bool: lambda _: True,
    datetime: lambda _: NOON,
    timedelta: lambda _: timedelta(minutes=1),
    Kind: lambda _: Kind.STEP,
    DataTable: _data_table,
    # A statement for each row of the table.
    Sequence[StepMove]: lambda _: [sample(one) for one in typing.get_args(StepMove)],
    Move[PhaseStatus]: lambda _: phase_moves.COMPLETE,
    Move[BatchStatus]: lambda _: batch_moves.COMPLETE,
    # Two of one topic; by the answer of the stand-in only one is inserted.
    Sequence[NewQueued]: lambda _: [
        NewQueued("topic", "subscription", f"message-{number}", "type", "{}", "{}", NOON, NOON) for number in (1, 2)
    ],
    Sequence[DataRow]: lambda _: [
        DataRow("anna", NOON, b"\1" * 16, list("abc")),
        DataRow("ffff", NOON, b"\2" * 16, ["d", None, None]),
    ],
}


def statements() -> str:
    written = []
    for name, function in sorted(public_functions(), key=lambda found: found[0]):
        tx = CompilingTransaction()
        function(**arguments_for(function, tx))
        if function is open_data_table:
            open_data_table(tx, _PLACE, ['x"; DROP TABLE batches; --', "]; DROP TABLE batches; --"])
        written += [f"-- {name}\n{statement}\nGO\n" for statement in tx.connection.sent]
    locking = CompilingConnection()
    SqlServer().lock_schema(locking)  # type: ignore[arg-type]
    written += [f"-- store.upgrade.upgrade\n{statement}\nGO\n" for statement in locking.sent]
    return "\n".join(written)


def roles() -> str:
    """Write what `matoolkit db roles` prints, for one identity of each part, one of them with a name that bites."""
    names = {part: f"id-matoolkit-{part}" for part in PARTS}
    return roles_script(SqlServer(), names | {"worker": HOSTILE}, "state") + "\n"


def migrations() -> str:
    script = upgrade_script(SqlServer())
    return "\n".join(line.rstrip() for line in script.splitlines()) + "\n"


if __name__ == "__main__":
    STATEMENTS.write_text(statements(), encoding="utf-8")
    MIGRATIONS.write_text(migrations(), encoding="utf-8")
    ROLES.write_text(roles(), encoding="utf-8")
