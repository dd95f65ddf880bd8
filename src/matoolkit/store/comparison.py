"""What Alembic's comparison of tables leaves out: primary keys, CHECK constraints, conditions of indexes."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import CheckConstraint, ClauseElement, Connection, Inspector, MetaData, Table, inspect
from sqlalchemy.engine import Dialect as DialectOfSqlAlchemy

from matoolkit.store.dialect import Dialect

# Each database writes a condition back in its own way; what it is about is in its names, values and comparisons.
_CAST = re.compile(r"::(character varying|\w+)(\[\])?")
_WORD = re.compile(r"'(?:[^']|'')*'|\w+|[<>]=?")
_NOISE = frozenset({"in", "any", "array", "or", "n"})


def left_out_differences(connection: Connection, metadata: MetaData, dialect: Dialect) -> Iterator[str]:
    """Say what differs in the tables that are there."""
    inspector = inspect(connection)
    there = set(inspector.get_table_names())
    for table in metadata.sorted_tables:
        if table.name in there:
            yield from _primary_key(inspector, table)
            yield from _checks(inspector, table, dialect.checks(connection, table.name))
            yield from _conditions(inspector, table)


def _primary_key(inspector: Inspector, table: Table) -> Iterator[str]:
    found = inspector.get_pk_constraint(table.name)["constrained_columns"]
    if found != [column.name for column in table.primary_key.columns]:
        yield f"primary key {table.name}: {'different' if found else 'missing'}"


def _checks(inspector: Inspector, table: Table, there: Mapping[str, str]) -> Iterator[str]:
    found = {name: _words(condition) for name, condition in there.items()}
    wanted = {
        str(check.name): _words(_written(check.sqltext, inspector.dialect))
        for check in table.constraints
        if isinstance(check, CheckConstraint)
    }
    for name in sorted(found.keys() | wanted.keys()):
        if found.get(name) != wanted.get(name):
            verb = "missing" if name not in found else "different" if name in wanted else "not expected"
            yield f"check {table.name} {name}: {verb}"


def _conditions(inspector: Inspector, table: Table) -> Iterator[str]:
    # An index that is missing altogether is Alembic's to tell.
    option = f"{inspector.dialect.name}_where"
    wanted: dict[str | None, Any] = {index.name: index.kwargs.get(option) for index in table.indexes}
    for index in inspector.get_indexes(table.name):
        name, found = index["name"], index.get("dialect_options", {}).get(option)
        if name in wanted and _about(found, inspector.dialect) != _about(wanted[name], inspector.dialect):
            yield f"condition {table.name} {name}: different"


def _about(condition: Any, dialect: DialectOfSqlAlchemy) -> frozenset[str]:
    if condition is None:
        return frozenset()
    return _words(_written(condition, dialect) if isinstance(condition, ClauseElement) else str(condition))


def _written(condition: ClauseElement, dialect: DialectOfSqlAlchemy) -> str:
    options = {"literal_binds": True, "include_table": False}
    return str(condition.compile(dialect=dialect, compile_kwargs=options))


def _words(condition: str) -> frozenset[str]:
    words = (word if word.startswith("'") else word.lower() for word in _WORD.findall(_CAST.sub("", condition)))
    return frozenset(words) - _NOISE
