"""Tables of executed work: steps of members, steps of init, steps of rollbacks and removals.

The three have the same columns for the work itself, so the same functions move their rows.
A job is in flight exactly while `lost_at` is set.
"""

from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Unicode,
    UnicodeText,
    UniqueConstraint,
    true,
)

from matoolkit.domain.states import FAILED_STEPS, RollbackCause, StepStatus
from matoolkit.store.dialect.types import BigId, Instant, OneOf, id_column, one_of, partial_index
from matoolkit.store.schema.metadata import metadata


def _work_columns() -> list[Column[Any]]:
    return [
        Column("step_name", Unicode(100), nullable=False, doc="Name of the step in the runbook."),
        Column("step_index", Integer, nullable=False, doc="Its place in its sequence, from 0."),
        Column("worker_id", Unicode(100), nullable=False, doc="The worker that is to do it."),
        Column("function_name", UnicodeText, doc="Function it calls; resolved at the first dispatch."),
        Column("params_json", UnicodeText, doc="Parameters as first sent, JSON; secrets from data as their templates."),
        Column("status", OneOf(StepStatus), nullable=False, doc="Where the step is in its life."),
        Column("attempt", Integer, nullable=False, doc="Dispatches so far, whatever their reason; never reset."),
        Column("job_id", Unicode(100), doc="Id of the latest job."),
        Column("result_json", UnicodeText, doc="What the worker returned, JSON."),
        Column("error_type", UnicodeText, doc="Kind of error, as the worker names it."),
        Column("error_message", UnicodeText, doc="What went wrong."),
        Column("error_fingerprint", Unicode(32), doc="What failures of one cause have in common; empty in old ones."),
        Column("missing_outputs_json", UnicodeText, doc="Outputs that the result owed and did not have, JSON."),
        Column("dispatched_at", Instant, doc="When the latest job was dispatched."),
        Column("completed_at", Instant, doc="When the step ended."),
        Column("timeout_sec", Integer, nullable=False, doc="Seconds after which a job counts as lost."),
        Column("answered_at", Instant, doc="When the answer to the latest job came; empty before."),
        Column("lost_at", Instant, doc="When the job in flight will count as lost; empty when none is."),
        Column("is_poll_step", Boolean, nullable=False, doc="Whether the step may answer that it is not done."),
        Column("poll_interval_sec", Integer, doc="Seconds between two polls."),
        Column("poll_timeout_sec", Integer, doc="Seconds after the first incomplete answer when polling ends."),
        Column("poll_started_at", Instant, doc="When the first incomplete answer came."),
        Column("last_polled_at", Instant, doc="When the latest answer came."),
        Column("poll_due_at", Instant, doc="When to poll again."),
        Column("poll_count", Integer, nullable=False, doc="Polls so far."),
        Column("on_failure", Unicode(100), doc="Rollback to run if the step fails for good."),
        Column("retry_count", Integer, nullable=False, doc="Retries used up."),
        Column("max_retries", Integer, nullable=False, doc="Retries allowed."),
        Column("retry_interval_sec", Integer, doc="Seconds before a retry."),
        Column("retry_after", Instant, doc="When to try again; empty when no retry waits."),
        Column("throttled_since", Instant, doc="Since when every attempt was throttled."),
        Column("created_at", Instant, nullable=False, doc="When the row was made."),
    ]


def _sweep_indexes(table: Table) -> None:
    partial_index(
        f"ix_{table.name}_poll",
        table.c.poll_due_at,
        table.c.id,
        where=table.c.status == StepStatus.POLLING,
    )
    partial_index(f"ix_{table.name}_retry", table.c.retry_after, table.c.id, where=table.c.retry_after.is_not(None))
    partial_index(f"ix_{table.name}_lost", table.c.lost_at, table.c.id, where=table.c.lost_at.is_not(None))


step_executions = Table(
    "step_executions",
    metadata,
    id_column("Number of the step of this member."),
    Column("batch_id", BigId, ForeignKey("batches.id"), nullable=False, doc="The batch."),
    Column("phase_execution_id", BigId, ForeignKey("phase_executions.id"), nullable=False, doc="The phase."),
    Column("batch_member_id", BigId, ForeignKey("batch_members.id"), nullable=False, doc="The member."),
    Column("epoch", Integer, nullable=False, doc="The member's epoch for which the step was made."),
    *_work_columns(),
    Column("holds_place", Boolean, doc="Whether its member has a place in its phase; only on a member's first step."),
    # Led by the member, so that it also finds a member's next step.
    UniqueConstraint(
        "batch_member_id", "epoch", "phase_execution_id", "step_index", name="uq_step_executions_member_step"
    ),
    one_of("status", StepStatus, "status"),
    # The member is in it for the count of those who have an open step (rule U1).
    Index("ix_step_executions_phase_status", "phase_execution_id", "status", "id", "batch_member_id"),
    Index("ix_step_executions_batch_id", "batch_id", "id"),
    sqlite_autoincrement=True,
)

init_executions = Table(
    "init_executions",
    metadata,
    id_column("Number of the init step."),
    Column("batch_id", BigId, ForeignKey("batches.id"), nullable=False, doc="The batch."),
    Column("runbook_version", Integer, nullable=False, doc="Version of the runbook that it comes from."),
    Column("init_count", Integer, nullable=False, doc="Which request of its batch's init it runs for."),
    *_work_columns(),
    UniqueConstraint("batch_id", "runbook_version", "step_index"),
    one_of("status", StepStatus, "status"),
    sqlite_autoincrement=True,
)

rollback_executions = Table(
    "rollback_executions",
    metadata,
    id_column("Number of the compensating step."),
    Column("batch_id", BigId, ForeignKey("batches.id"), nullable=False, doc="The batch."),
    Column("batch_member_id", BigId, ForeignKey("batch_members.id"), doc="The member; empty for init."),
    Column("epoch", Integer, doc="The member's epoch that it undoes; empty for init."),
    Column("runbook_version", Integer, nullable=False, doc="Version of the runbook that it comes from."),
    Column("cause", OneOf(RollbackCause), nullable=False, doc="Why it runs."),
    Column("step_execution_id", BigId, ForeignKey("step_executions.id"), doc="The step that failed."),
    Column("init_execution_id", BigId, ForeignKey("init_executions.id"), doc="The init step that failed."),
    Column("sequence_name", Unicode(100), nullable=False, doc="Name of the rollback in the runbook."),
    Column("sequence_key", Unicode(100), nullable=False, doc="What started it: one key, one sequence."),
    *_work_columns(),
    UniqueConstraint("sequence_key", "step_index"),
    one_of("status", StepStatus, "status"),
    one_of("cause", RollbackCause, "cause"),
    Index("ix_rollback_executions_member", "batch_member_id", "status"),
    Index("ix_rollback_executions_batch_status", "batch_id", "status", "id"),
    sqlite_autoincrement=True,
)

# How much each worker did in a minute, and when it last did something (rule U6).
partial_index(
    "ix_step_executions_ended",
    step_executions.c.worker_id,
    step_executions.c.status,
    step_executions.c.completed_at,
    where=step_executions.c.completed_at.is_not(None),
)

partial_index(
    "ix_step_executions_places",
    step_executions.c.phase_execution_id,
    step_executions.c.batch_member_id,
    where=step_executions.c.holds_place == true(),
)

partial_index(
    "ix_rollback_executions_failed",
    rollback_executions.c.id,
    where=rollback_executions.c.status.in_(sorted(FAILED_STEPS)),
)

for _table in (step_executions, init_executions, rollback_executions):
    _sweep_indexes(_table)
