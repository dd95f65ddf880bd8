"""Statements run by SQLAlchemy itself: slow, to find out whether a fault is ours, and to prove that it is not.

Nothing here is shared with the quick way but the statement and its values: SQLAlchemy compiles, binds, reads and names.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection, CursorResult, Executable, event
from sqlalchemy.types import TypeEngine

from matoolkit.store.dialect.questions import Filling
from matoolkit.store.sql.execution import Runner, Watcher
from matoolkit.store.sql.prepared import Ready
from matoolkit.store.sql.storable import storable_value

RowT = TypeVar("RowT")


class SqlAlchemyRunner(Runner):
    """Runs statements on a connection as SQLAlchemy does."""

    def __init__(self, connection: Connection, watchers: Iterable[Watcher]) -> None:
        super().__init__(connection, watchers)
        self._is_running = False
        event.listen(connection, "before_cursor_execute", self._about_to_run, retval=True)

    def changed(self, statement: Executable | Ready) -> int:
        """Run a statement and say how many rows it changed."""
        result = self._executed(statement)
        self._note(result, result.rowcount)
        return result.rowcount

    def rows(self, make: Callable[..., RowT], statement: Executable | Ready, given: Mapping[str, Any]) -> list[RowT]:
        """Run a statement and make a record of each row it returns and of what is given for all of them."""
        result = self._executed(statement)
        is_record = isinstance(make, type) and is_dataclass(make)
        found = [make(**row._mapping, **given) if is_record else make(*row) for row in result]  # noqa: SLF001 - it is public
        self._note(result, len(found))
        return found

    def values(self, statement: Executable | Ready) -> list[Any]:
        """Run a statement and return the first column of what it returns."""
        result = self._executed(statement)
        found = list(result.scalars())
        self._note(result, len(found))
        return found

    def fill(self, filling: Filling) -> None:
        """Put the rows that a statement writes where it looks for them."""
        self.connection.exec_driver_sql(filling.empty)
        self.connection.exec_driver_sql(filling.fill, list(map(tuple, filling.rows)))

    def _executed(self, statement: Executable | Ready) -> CursorResult[Any]:
        if not isinstance(statement, Ready):
            return self._watched(statement, {})
        if statement.filling is not None:
            self.fill(statement.filling)
        return self._watched(statement.plan.statement, statement.values)

    def _watched(self, statement: Executable, values: Mapping[str, Any]) -> CursorResult[Any]:
        self._is_running = True
        try:
            return self.connection.execute(statement, values or None, execution_options={"preserve_rowcount": True})
        finally:
            self._is_running = False

    def _about_to_run(
        self, _connection: Connection, cursor: Any, text: str, parameters: Any, context: Any, _is_many: bool
    ) -> tuple[str, Any]:
        # Savepoints and statements that fill a table come through here too. Watchers see neither of them.
        if not self._is_running:
            return text, parameters
        if isinstance(parameters, dict):
            parameters = {name: storable_value(value) for name, value in parameters.items()}
        else:
            parameters = tuple(map(storable_value, parameters))
        if self.typing is not None and parameters:
            cursor.setinputsizes(self.typing(_kinds_of(context), parameters))
        if self.is_guarded:
            self.require_reading(text)
        for watch in self._watchers:
            watch(text, parameters)
        return text, parameters

    def _note(self, result: CursorResult[Any], rows: int) -> None:
        if rows > 0 and not getattr(result.context.invoked_statement, "is_select", False):
            self.has_written = True


def _kinds_of(context: Any) -> list[TypeEngine[Any]]:
    """Return the types of the parameters by their places; the values of a list have the type of the list."""
    compiled, lists = context.compiled, context._expanded_parameters  # noqa: SLF001 - told in no other way
    types = {name: parameter.type for parameter, name in compiled.bind_names.items()}
    written = {name for parameter, name in compiled.bind_names.items() if parameter in compiled.literal_execute_params}
    places = (name for name in compiled.positiontup if name not in written)
    return [types[name] for name in places for _ in lists.get(name, (name,))]
