"""What can be known about a query without running it: whether it only reads, and which columns it returns (rule R4).

The parser helps but does not decide. It does not know every dialect, so a query that it cannot read is checked word by
word instead, and nothing is said about its columns.
"""

import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot.expressions import Expr, Query

# The parser logs what it skips. We do not need that: `QueryFacts` says whether the query was understood.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())

# Functions that the parser does not know for what they are.
_NOW = frozenset({"GETDATE", "GETUTCDATE", "SYSUTCDATETIME", "SYSDATETIME", "SYSDATETIMEOFFSET", "NOW"})
# The table that a list is to its query.
ROWS = "rows"
_NOT_A_QUERY = "it does not begin with SELECT or WITH"
# Any database can be behind `sql`; the first of these that can read the query is taken for its own.
_DIALECTS = {
    "dataverse": ("tsql",),
    "databricks": ("databricks",),
    "sql": ("sqlite", "tsql", "postgres", "databricks", "mysql"),
    "file": ("sqlite",),
}
_WRITING_WORDS = frozenset(
    {"ALTER", "BACKUP", "CALL", "COPY", "CREATE", "DBCC", "DECLARE", "DELETE", "DROP", "EXEC", "EXECUTE", "GRANT"}
    | {"INSERT", "INTO", "KILL", "MERGE", "RESTORE", "REVOKE", "SHUTDOWN", "TRUNCATE", "UPDATE", "WAITFOR"}
)
# Strings, quoted names and comments, in which a word means nothing; then words and semicolons.
_LEXEMES = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/|(?P<word>[A-Za-z_]\w*)|(?P<end>;)""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """Why the query is refused, if it is, and its columns, if they can be told."""

    refusal: str | None
    columns: tuple[str, ...] | None
    is_understood: bool = True
    tables: frozenset[str] = frozenset()


def query_facts(query: str, source_type: str) -> QueryFacts:
    """Look into a query as the kind of source it goes to would read it."""
    # The parser takes a while to import, so only the linter imports it.
    from sqlglot import exp

    if "/*!" in query:
        return QueryFacts("it holds a comment that some databases execute", None)
    parsed = _parsed(query, _DIALECTS[source_type])
    if parsed is None:
        return QueryFacts(_refusal_by_words(query), None, is_understood=False)
    # The parser takes a comment after the last semicolon for a statement; databases do not.
    statements = [found for found in parsed if found is not None and not isinstance(found, exp.Semicolon)]
    if len(statements) != 1:
        return QueryFacts("it holds more than one statement" if statements else "it holds no statement", None)
    (statement,) = statements
    if not isinstance(statement, exp.Query) or not _begins_as_query(query):
        return QueryFacts(_NOT_A_QUERY, None)
    if refusal := _refusal_of(statement):
        return QueryFacts(refusal, None)
    # An expression without a name is a column that no key can refer to.
    names = tuple(filter(None, statement.named_selects))
    columns = None if statement.is_star or "*" in names else names
    return QueryFacts(None, columns, tables=_tables_of(statement))


def with_bracketed_names(query: str) -> str:
    """Write names in double quotes with brackets: SQLite takes a name in quotes that no column has for a text."""
    return _LEXEMES.sub(lambda lexeme: _bracketed(lexeme[0]), query)


def _bracketed(lexeme: str) -> str:
    is_plain_name = lexeme.startswith('"') and "]" not in lexeme and '""' not in lexeme
    return f"[{lexeme[1:-1]}]" if is_plain_name else lexeme


def on_rows(query: str, source_type: str, now: datetime) -> str:
    """Write a query that reads one table so that it reads the table `rows` of SQLite; a `ValueError` says why not.

    Where it asks what time it is, it is told: its own database would know, but SQLite knows only the clock.
    """
    from sqlglot import exp

    parsed = _parsed(query, _DIALECTS[source_type])
    statement = parsed[0] if parsed else None
    if not isinstance(statement, exp.Query):
        raise ValueError("its query cannot be read")  # noqa: TRY004 - what was given is text, and its content is wrong
    tables = sorted(_tables_of(statement))
    if len(tables) != 1:
        raise ValueError(f"its query reads {', '.join(tables)}, and the rows can stand for one table")
    for table in list(statement.find_all(exp.Table)):
        if table.name == tables[0]:
            table.replace(exp.to_table(ROWS, alias=table.alias_or_name))
    for column in statement.find_all(exp.Column):
        # The table has an alias now, and no schema.
        column.set("db", None)
        column.set("catalog", None)
    for part in list(statement.find_all(exp.CurrentTimestamp, exp.CurrentDate, exp.Anonymous)):
        if not isinstance(part, exp.Anonymous) or part.name.upper() in _NOW:
            part.replace(exp.Literal.string(f"{now:%Y-%m-%d %H:%M:%S}"))
    return statement.sql(dialect="sqlite")


def _tables_of(statement: "Query") -> frozenset[str]:
    """List the tables that are read, apart from those that the query makes itself."""
    from sqlglot import exp

    own = {part.alias.casefold() for part in statement.find_all(exp.CTE)}
    read = {part.name for part in statement.find_all(exp.Table)}
    return frozenset(name for name in read if name and name.casefold() not in own)


def _parsed(query: str, dialects: Sequence[str]) -> "list[Expr | None] | None":
    """Parse a query as the first of these dialects that can read it."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    for dialect in dialects:
        with suppress(SqlglotError, RecursionError):
            return list(sqlglot.parse(query, read=dialect))
    return None


def _refusal_of(statement: "Query") -> str | None:
    from sqlglot import exp

    writing = (exp.DML, exp.DDL, exp.Merge, exp.Drop, exp.Alter, exp.Command, exp.Into)
    if any(isinstance(part, writing) and not isinstance(part, exp.Query) for part in statement.walk()):
        return "it writes, and a source is only read"
    if any(isinstance(part, exp.Lock) for part in statement.walk()):
        return "it locks rows, and a source is only read"
    return None if statement.named_selects else "it selects no column"


def _begins_as_query(query: str) -> bool:
    first = next((match["word"] for match in _LEXEMES.finditer(query) if match["word"]), "")
    return first.upper() in {"SELECT", "WITH"}


def _refusal_by_words(query: str) -> str | None:
    if not _begins_as_query(query):
        return _NOT_A_QUERY
    found = [match for match in _LEXEMES.finditer(query) if match["word"] or match["end"]]
    words = [match["word"].upper() for match in found if match["word"]]
    if any(match["end"] for match in found[:-1]):
        return "it holds more than one statement"
    if writing := next((word for word in words if word in _WRITING_WORDS), None):
        return f"it holds the word {writing}; a column of that name needs quotes"
    return None
