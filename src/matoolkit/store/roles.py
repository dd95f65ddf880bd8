"""Who may do what in the state database: the least that each part of the system works with.

Rows are kept, so hardly anything is deleted, and the audit log is only added to. Only the scheduler makes tables while
the system works, and only in the schema of the data tables; the deploying identity makes all others.
"""

from collections.abc import Mapping

from matoolkit.store.dialect import Dialect
from matoolkit.store.dialect.questions import Rights
from matoolkit.store.schema import metadata

PARTS = ("deploy", "scheduler", "orchestrator", "api", "worker")

_ADDED_TO = frozenset({"audit_log"})
_EMPTIED = frozenset(
    {"bus_messages", "bus_recent_ids", "idempotency_keys", "outbox", "set_aside_keys", "worker_functions"}
)
# A worker meets the others on the bus alone, and needs a database only where the bus is in one.
_OF_THE_BUS = ("bus_messages", "bus_recent_ids", "dead_letters")


def roles_script(dialect: Dialect, names: Mapping[str, str], database: str) -> str:
    """Write the SQL that creates the roles and users with what they may do; names are those of the identities."""
    return dialect.roles([_rights(part, names.get(part)) for part in PARTS], database)


def _rights(part: str, name: str | None) -> Rights:
    tables = () if part == "deploy" else _OF_THE_BUS if part == "worker" else sorted(metadata.tables)
    return Rights(
        role=f"matoolkit_{part}",
        identity=name,
        tables={table: _verbs(table) for table in tables},
        numbered=frozenset(table for table in tables if "id" in metadata.tables[table].c),
        deploys=part == "deploy",
        makes_data_tables=part == "scheduler",
        reads_data_tables=part == "api",
    )


def _verbs(table: str) -> tuple[str, ...]:
    if table in _ADDED_TO:
        return ("SELECT", "INSERT")
    return ("SELECT", "INSERT", "UPDATE", "DELETE") if table in _EMPTIED else ("SELECT", "INSERT", "UPDATE")
