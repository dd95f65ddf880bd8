"""What can be told of a query without running it: whether it only reads, and which columns it returns (rule R4).

The parser is a help, not a judge. It does not know every dialect, so a query that it cannot read is checked word by
word instead, and nothing is said about its columns.
"""

import logging
import re
from contextlib import suppress
from dataclasses import dataclass

# The parser logs what it passes over; whether the query was understood is in its facts.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())

_NOT_A_QUERY = "it does not begin with SELECT or WITH"
# Any database can be behind `sql`; the first of these that can read the query is taken for its own.
_DIALECTS = {
    "dataverse": ("tsql",),
    "databricks": ("databricks",),
    "sql": ("sqlite", "tsql", "postgres", "databricks", "mysql"),
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


def query_facts(query: str, source_type: str) -> QueryFacts:
    """Look into a query as the kind of source it goes to would read it."""
    # The parser takes a third of a second to import: only those who lint pay for it.
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if "/*!" in query:
        return QueryFacts("it holds a comment that some databases execute", None)
    parsed = None
    for dialect in _DIALECTS[source_type]:
        with suppress(SqlglotError, RecursionError):
            parsed = sqlglot.parse(query, read=dialect)
            break
    if parsed is None:
        return QueryFacts(_refusal_by_words(query), None, is_understood=False)
    # A comment after the last semicolon is a statement to the parser, but to nobody else.
    statements = [found for found in parsed if found is not None and not isinstance(found, exp.Semicolon)]
    if len(statements) != 1:
        return QueryFacts("it holds more than one statement" if statements else "it holds no statement", None)
    (statement,) = statements
    if not isinstance(statement, exp.Query) or not _begins_as_query(query):
        return QueryFacts(_NOT_A_QUERY, None)
    writing = (exp.DML, exp.DDL, exp.Merge, exp.Drop, exp.Alter, exp.Command, exp.Into)
    if any(isinstance(part, writing) and not isinstance(part, exp.Query) for part in statement.walk()):
        return QueryFacts("it writes, and a source is only read", None)
    if any(isinstance(part, exp.Lock) for part in statement.walk()):
        return QueryFacts("it locks rows, and a source is only read", None)
    names = tuple(statement.named_selects)
    if not names:
        return QueryFacts("it selects no column", None)
    # An expression without a name is a column that nobody can refer to.
    return QueryFacts(None, None if statement.is_star or "*" in names else tuple(filter(None, names)))


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
