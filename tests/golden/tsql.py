"""Every statement of the store, compiled for SQL Server.

No server is needed for it: a stand-in for the connection compiles what it is given and answers with a made-up row.
`python -m tests.golden.tsql` writes the files anew after a change that was meant.
"""

import types
from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import BindParameter, make_url
from sqlalchemy.dialects import mssql
from sqlalchemy.sql import visitors

from matoolkit.store import Transaction
from matoolkit.store.checkup.samples import Samples, public_functions
from matoolkit.store.datanames import DataTableName
from matoolkit.store.datatables import open_data_table
from matoolkit.store.dialect.mssql import SqlServer
from matoolkit.store.roles import PARTS, roles_script
from matoolkit.store.sql.execution import COMPILED, Compiled, Runner, no_statements
from matoolkit.store.sql.prepared import Ready
from matoolkit.store.sql.rehearsal import Answer
from matoolkit.store.upgrade import upgrade_script

FOLDER = Path(__file__).parent
STATEMENTS, MIGRATIONS, ROLES = (FOLDER / f"{name}.sql" for name in ("statements", "migrations", "roles"))
HOSTILE = "x'; DROP TABLE batches; --]\""
NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)

THERE = DataTableName("runbook_wave_v1_there", SqlServer.data_schema)
NOT_THERE = DataTableName("runbook_wave_v1", SqlServer.data_schema)


class CompilingConnection:
    """Stands in for a connection and keeps what it is asked to execute, as T-SQL."""

    def __init__(self) -> None:
        self.dialect = mssql.dialect(**SqlServer.writing_options)  # type: ignore[no-untyped-call]
        self.dialect._supports_offset_fetch = True  # noqa: SLF001 - as a connected dialect finds out by itself
        self.engine = types.SimpleNamespace(url=make_url("mssql://server/state"))
        self.sent: list[str] = []

    def get_execution_options(self) -> dict[str, Any]:
        return {COMPILED: no_statements()}

    def exec_driver_sql(self, statement: str) -> Any:
        self.sent.append(statement)
        return types.SimpleNamespace(scalar=lambda: "Exclusive")


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
        return take(Answer(statement, self.connection.dialect))


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


def statements() -> str:
    written = []
    samples = Samples(7, NOON, THERE, open_data_table(CompilingTransaction(), NOT_THERE, ["Email", "Aliases"]))
    for name, function in sorted(public_functions(), key=lambda found: found[0]):
        tx = CompilingTransaction()
        function(**samples.arguments_for(function, tx))
        if function is open_data_table:
            open_data_table(tx, NOT_THERE, ['x"; DROP TABLE batches; --', "]; DROP TABLE batches; --"])
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
