"""What each table holds, in a sentence or two, for docs/reference/tables.md."""

MEANINGS = {
    "runbooks": "One row for each published version of a runbook; at most one version of a name is active.",
    "runbook_automation_settings": "Whether the scheduler may query a runbook's source. No row means no.",
    "runbook_ticks": "What the last tick of the scheduler did for a runbook: the first place to look.",
    "member_inclusions": "Whom a person lets into the batch of a time although the scheduler would not.",
    "set_aside_keys": "Keys of the rows that the last reading of a version set aside.",
    "data_table_columns": "Which column of a data table holds which column of the query.",
    "worker_functions": "The functions that workers announced when they started.",
    "batches": "Members that share a start time T, or that a person put together by hand.",
    "batch_members": "Who is or was in a batch. A member that leaves keeps its row; one that returns gets a new epoch.",
    "phase_executions": "The phases of a batch: when each is due and how far it is.",
    "step_executions": "One step of one member: what was called with what, how often, and what came of it.",
    "init_executions": "The steps that run once for a batch before its first phase.",
    "rollback_executions": "Steps that undo: after a failure, or when a member was removed.",
    "outbox": "Messages that were written with the state that causes them and are not sent yet. Normally almost empty.",
    "bus_messages": "Messages that wait for a subscription when the bus is in this database.",
    "bus_recent_ids": "Messages published in the last minutes, by which duplicates are recognised.",
    "dead_letters": "Messages that nobody could handle, until somebody resends or discards them.",
    "audit_log": "Every change that a person made. Reading is not recorded.",
    "idempotency_keys": "Requests to the admin API that came with a key, so that a repeated one is done once.",
    "leases": "Which process does the work that only one may do at a time.",
}
