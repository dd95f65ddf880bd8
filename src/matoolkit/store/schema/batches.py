"""Tables of batches, their members and their phases."""

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
    and_,
    false,
    true,
)

from matoolkit.domain.keys import MAX_KEY_LENGTH
from matoolkit.domain.states import OPEN_PHASES, UNFINISHED_BATCHES, BatchStatus, MemberStatus, PhaseStatus
from matoolkit.store.dialect.types import BigId, FoldedKey, Instant, OneOf, id_column, one_of, partial_index
from matoolkit.store.schema.metadata import metadata

batches = Table(
    "batches",
    metadata,
    id_column("Number of the batch."),
    Column("runbook_id", BigId, ForeignKey("runbooks.id"), nullable=False, doc="Version it follows now."),
    Column("runbook_name", Unicode(100), nullable=False, doc="Name of the runbook; outlives a version."),
    Column("batch_start_time", Instant, doc="T, from which offsets count; empty for a manual batch."),
    Column("status", OneOf(BatchStatus), nullable=False, doc="Where the batch is in its life."),
    Column("is_manual", Boolean, nullable=False, doc="Whether a person made it from a CSV file."),
    Column("created_by", Unicode(200), doc="Who made it, if a person did."),
    Column("current_phase", Unicode(100), doc="Phase that was last advanced to, in a manual batch."),
    Column("detected_at", Instant, nullable=False, doc="When the batch was created."),
    Column("init_dispatched_at", Instant, doc="When its init was last requested."),
    Column("init_count", Integer, nullable=False, doc="How often its init was requested."),
    Column("completed_at", Instant, doc="When it ended, well or not."),
    Column("reopened_at", Instant, doc="When a person's retry reopened it; it then keeps its version."),
    Column("hold_count", Integer, nullable=False, doc="How often it was held."),
    Column("removals_approved_at", Instant, doc="When removals that a person approved were last made."),
    Column("wake_count", Integer, doc="How often all who wait in it were woken; empty for never."),
    Column(
        "join_count",
        Integer,
        doc="How often people joined it since it was there, together or one by one; empty for never.",
    ),
    one_of("status", BatchStatus, "status"),
    Index("ix_batches_runbook_id", "runbook_id"),
    Index("ix_batches_runbook_name_status", "runbook_name", "status"),
    Index("ix_batches_status", "status", "id"),
    sqlite_autoincrement=True,
)
partial_index(
    "uq_batches_start_time",
    batches.c.runbook_name,
    batches.c.batch_start_time,
    where=batches.c.is_manual == false(),
    unique=True,
)
partial_index(
    "ix_batches_unfinished",
    batches.c.runbook_name,
    batches.c.id,
    where=batches.c.status.in_(sorted(UNFINISHED_BATCHES)),
)

batch_members = Table(
    "batch_members",
    metadata,
    id_column("Number of the member in its batch."),
    Column("batch_id", BigId, ForeignKey("batches.id"), nullable=False, doc="The batch."),
    Column("member_key", Unicode(MAX_KEY_LENGTH), nullable=False, doc="Its key, as first spelled."),
    Column("member_key_fold", FoldedKey, nullable=False, doc="The key folded for comparison."),
    Column("status", OneOf(MemberStatus), nullable=False, doc="Whether it still takes part."),
    Column("epoch", Integer, nullable=False, doc="1, and one more each time it starts all over."),
    Column(
        "first_phase_version",
        Integer,
        doc="Version whose first phases it leaves out in this epoch; empty when it goes through all of them.",
    ),
    Column(
        "first_phase_place",
        Integer,
        doc="Place of the phase with which it begins there, in the order in which phases run, from 0.",
    ),
    Column("data_json", UnicodeText, nullable=False, doc="Its row of the source, JSON."),
    Column("data_hash", Unicode(32), nullable=False, doc="Hash of that row, to see whether it changed."),
    Column("worker_data_json", UnicodeText, nullable=False, doc="Outputs of its steps so far, JSON."),
    Column("added_at", Instant, nullable=False, doc="When it joined, or joined again."),
    Column("add_dispatched_at", Instant, doc="When the orchestrator was told that it joined late."),
    Column("caught_up_at", Instant, doc="When it caught up with its batch in this epoch; empty while it waits."),
    Column("left_source_at", Instant, doc="When the source, after T, no longer returned it."),
    Column("removed_at", Instant, doc="When it left."),
    Column("removed_by", Unicode(200), doc="Who removed it: a person, or the scheduler."),
    Column("remove_reason", UnicodeText, doc="Why it left."),
    Column("remove_dispatched_at", Instant, doc="When the orchestrator was told that it left."),
    Column(
        "seen_off_at",
        Instant,
        doc="When the orchestrator stopped its work after it left, and created what is to run for it; empty before.",
    ),
    Column("failed_at", Instant, doc="When one of its steps failed for good."),
    Column("undone_at", Instant, doc="When a person undid it; empty unless it left because of that."),
    Column(
        "undo_version",
        Integer,
        doc="Version whose removal steps run for an undone member; empty when there is nothing to undo.",
    ),
    Column(
        "source_time", Instant, doc="The last time that the source gave it while this batch had it; empty if manual."
    ),
    Column(
        "counted_as",
        Integer,
        doc="What `member_counts` counts it as: 1 if it caught up, 2 while it is being undone, 4 if it was undone, "
        "8 if it failed, 16 if it was removed, added up.",
    ),
    Column("is_pilot", Boolean, doc="Whether it goes first; chosen when the first phase of its batch begins."),
    Column(
        "joined_no",
        Integer,
        doc="The `join_count` with which it joined or returned; empty if its batch was made with it.",
    ),
    Column("refreshed_at", Instant, doc="When the source last had other data for it."),
    UniqueConstraint("batch_id", "member_key_fold"),
    one_of("status", MemberStatus, "status"),
    Index("ix_batch_members_status", "batch_id", "status", "id"),
    Index("ix_batch_members_batch_id", "batch_id", "id"),
    Index("ix_batch_members_member_key_fold", "member_key_fold"),
    sqlite_autoincrement=True,
)
partial_index(
    "ix_batch_members_waiting",
    batch_members.c.batch_id,
    batch_members.c.status,
    where=batch_members.c.caught_up_at.is_(None),
)
partial_index(
    "ix_batch_members_leaving",
    batch_members.c.id,
    where=and_(batch_members.c.removed_at.is_not(None), batch_members.c.seen_off_at.is_(None)),
)

partial_index(
    "ix_batch_members_pilots", batch_members.c.batch_id, batch_members.c.id, where=batch_members.c.is_pilot == true()
)

phase_executions = Table(
    "phase_executions",
    metadata,
    id_column("Number of the phase in its batch."),
    Column("batch_id", BigId, ForeignKey("batches.id"), nullable=False, doc="The batch."),
    Column("runbook_version", Integer, nullable=False, doc="Version of the runbook that it comes from."),
    Column("phase_name", Unicode(100), nullable=False, doc="Name of the phase in the runbook."),
    Column("phase_index", Integer, nullable=False, doc="Its place in the runbook, from 0."),
    Column("offset_minutes", Integer, nullable=False, doc="Minutes before T; negative after T."),
    Column("due_at", Instant, doc="When it is due; empty in a manual batch."),
    Column("status", OneOf(PhaseStatus), nullable=False, doc="Where the phase is in its life."),
    Column("dispatched_at", Instant, doc="When it was last dispatched."),
    Column("dispatch_count", Integer, nullable=False, doc="How often it was dispatched."),
    Column("expanded_at", Instant, doc="When all its members had their steps."),
    Column("completed_at", Instant, doc="When it ended, well or not."),
    Column("member_count", Integer, doc="Active members when it began; a budget in percent is a part of these."),
    Column("pilot_done_at", Instant, doc="When the last pilot had ended it; empty before."),
    Column("late_after", Instant, doc="After this it does not begin without a person; empty for never."),
    Column("woken_at", Instant, doc="When those who waited in it were last woken because time opened a gate."),
    UniqueConstraint("batch_id", "runbook_version", "phase_index"),
    one_of("status", PhaseStatus, "status"),
    sqlite_autoincrement=True,
)
partial_index(
    "ix_phase_executions_due",
    phase_executions.c.due_at,
    phase_executions.c.id,
    where=phase_executions.c.status == PhaseStatus.PENDING,
)
partial_index(
    "ix_phase_executions_running",
    phase_executions.c.id,
    where=phase_executions.c.status == PhaseStatus.DISPATCHED,
)
partial_index(
    "ix_phase_executions_open",
    phase_executions.c.batch_id,
    where=phase_executions.c.status.in_(sorted(OPEN_PHASES)),
)
