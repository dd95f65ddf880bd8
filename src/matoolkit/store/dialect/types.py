"""Column types that mean the same on every database."""

from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ColumnElement,
    DateTime,
    Dialect,
    Index,
    Integer,
    String,
    TextClause,
    Unicode,
)
from sqlalchemy.dialects.mssql import DATETIME2
from sqlalchemy.types import TypeDecorator, TypeEngine

from matoolkit.clock import as_utc
from matoolkit.domain.keys import MAX_KEY_LENGTH

# SQLite makes only a column of type INTEGER an alias of its row number.
BigId = BigInteger().with_variant(Integer(), "sqlite")

# Compared byte by byte: the folding is done before, and must not be done again by a collation of the server.
FoldedKey = Unicode(MAX_KEY_LENGTH).with_variant(Unicode(MAX_KEY_LENGTH, collation="Latin1_General_100_BIN2"), "mssql")


_LENGTH_OF_TEXT = len("2026-01-01 00:00:00.000000")


class Instant(TypeDecorator[datetime]):
    """An aware UTC time, with microseconds; a time without zone is refused.

    PostgreSQL keeps the zone. SQLite and SQL Server keep none: there a stored time is UTC by agreement. SQLite has no
    type for times. A column declared as one would count as numeric, and every text written to it be tried as a number.
    """

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose the database's own type with microseconds."""
        if dialect.name == "mssql":
            return dialect.type_descriptor(DATETIME2(6))  # type: ignore[no-untyped-call]
        if dialect.name == "sqlite":
            return dialect.type_descriptor(String(_LENGTH_OF_TEXT))
        return dialect.type_descriptor(DateTime(timezone=dialect.name == "postgresql"))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | str | None:
        """Turn an aware time into what the database stores."""
        if value is None:
            return None
        if dialect.name == "sqlite":
            return stored_text(value)
        instant = as_utc(value)
        return instant if dialect.name == "postgresql" else instant.replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Turn what the database stores into an aware UTC time."""
        if value is None:
            return None
        return value.astimezone(UTC) if dialect.name == "postgresql" else value.replace(tzinfo=UTC)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], datetime | None] | None:
        """Read SQLite's texts at once, each once: the rows of a pile share most of their times."""
        return _read_text if dialect.name == "sqlite" else super().result_processor(dialect, coltype)


class OneOf(TypeDecorator[StrEnum]):
    """A word from an enum, stored as text."""

    impl = Unicode
    cache_ok = True

    def __init__(self, choices: type[StrEnum]) -> None:
        super().__init__(20)
        self.choices = choices
        # Looked up for every row that is read, which an enum does slowly.
        words: dict[str | None, StrEnum | None] = {str(choice): choice for choice in choices}
        self._members = words | {None: None}

    def process_bind_param(self, value: StrEnum | str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Store the word; one that is not in the enum is refused before the database sees it."""
        return None if value is None else str(self.choices(value))

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], StrEnum | None]:  # noqa: ARG002
        """Return the member of the enum."""
        return self._members.__getitem__


def stored_text(instant: datetime) -> str:
    """Write a time as SQLite stores it: as long as any other, so that texts compare as times do."""
    return as_utc(instant).replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")


@lru_cache(maxsize=4096)
def _read_text(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=UTC)


def id_column(doc: str) -> Column[int]:
    """Make the numbered key of a table."""
    return Column("id", BigId, primary_key=True, autoincrement=True, doc=doc)


def one_of(column: str, choices: type[StrEnum], name: str) -> CheckConstraint:
    """Make the constraint that allows only the words of an enum."""
    return CheckConstraint(is_one_of(column, *choices), name=name)


def is_one_of(column: str, *words: str) -> str:
    """Write the condition that a column has one of some words.

    Word by word: for a longer list after IN, SQLite makes a table of it anew for every row that is written.
    """
    return " OR ".join(f"{column} = '{word!s}'" for word in words)


def partial_index(name: str, *columns: str | Column[Any], where: ColumnElement[bool], unique: bool = False) -> Index:
    """Make an index over the rows that satisfy a condition."""
    return Index(name, *columns, unique=unique, **only_where(where))


def only_where(condition: ColumnElement[bool] | TextClause) -> dict[str, Any]:
    """Return the options that limit an index to some rows, on every database."""
    return {"sqlite_where": condition, "postgresql_where": condition, "mssql_where": condition}
