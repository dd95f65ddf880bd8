"""All tables (rules D1 and D2); docs/reference/tables.md is made from what each column says of itself."""

from matoolkit.store.schema.administration import audit_log, idempotency_keys, leases, pace
from matoolkit.store.schema.batches import batch_members, batches, phase_executions
from matoolkit.store.schema.counts import batch_changes, member_counts, step_counts
from matoolkit.store.schema.executions import init_executions, rollback_executions, step_executions
from matoolkit.store.schema.gates import approvals, gates
from matoolkit.store.schema.meanings import MEANINGS
from matoolkit.store.schema.messages import (
    bus_messages,
    bus_recent_ids,
    dead_letters,
    outbox,
)
from matoolkit.store.schema.metadata import metadata
from matoolkit.store.schema.runbooks import (
    data_table_columns,
    member_exclusions,
    member_inclusions,
    runbook_automation_settings,
    runbook_ticks,
    runbooks,
    set_aside_keys,
    worker_functions,
)

__all__ = [
    "MEANINGS",
    "approvals",
    "audit_log",
    "batch_changes",
    "batch_members",
    "batches",
    "bus_messages",
    "bus_recent_ids",
    "data_table_columns",
    "dead_letters",
    "gates",
    "idempotency_keys",
    "init_executions",
    "leases",
    "member_counts",
    "member_exclusions",
    "member_inclusions",
    "metadata",
    "outbox",
    "pace",
    "phase_executions",
    "rollback_executions",
    "runbook_automation_settings",
    "runbook_ticks",
    "runbooks",
    "set_aside_keys",
    "step_counts",
    "step_executions",
    "worker_functions",
]
