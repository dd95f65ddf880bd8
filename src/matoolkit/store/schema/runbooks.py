"""Tables about runbooks: versions, automation, the last tick, the columns of data tables."""

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

from matoolkit.domain.keys import MAX_KEY_LENGTH
from matoolkit.domain.states import OverdueBehavior
from matoolkit.store.dialect.types import BigId, FoldedKey, Instant, OneOf, id_column, one_of, partial_index
from matoolkit.store.schema.metadata import metadata

runbooks = Table(
    "runbooks",
    metadata,
    id_column("Number of this version of this runbook."),
    Column("name", Unicode(100), nullable=False, doc="Name, spelled as in the first version."),
    Column("name_key", FoldedKey, nullable=False, doc="The name folded for comparison."),
    Column("version", Integer, nullable=False, doc="1 for the first publication, then one more each time."),
    Column("yaml_content", UnicodeText, nullable=False, doc="The document as it was published."),
    Column("content_hash", Unicode(64), nullable=False, doc="Hash of the document, to recognise it."),
    Column("data_table_name", Unicode(63), nullable=False, doc="Table with the rows of this version's query."),
    Column("data_table_schema", Unicode(63), doc="Schema of that table; empty if it is beside the other tables."),
    Column("is_active", Boolean, nullable=False, doc="Whether this is the version in use; at most one is."),
    Column(
        "overdue_behavior",
        OneOf(OverdueBehavior),
        nullable=False,
        doc="What batches in flight do with phases past due when they take this version: rerun or ignore.",
    ),
    Column(
        "ignore_overdue_applied",
        Boolean,
        nullable=False,
        doc="Whether all batches in flight have made the transition to this version.",
    ),
    Column("rerun_init", Boolean, nullable=False, doc="Whether batches in flight run init again."),
    Column("published_by", Unicode(200), nullable=False, doc="Who published it."),
    Column("created_at", Instant, nullable=False, doc="When it was published."),
    Column("last_error", UnicodeText, doc="What went wrong in the last tick; empty after a good one."),
    Column("last_error_at", Instant, doc="When it went wrong."),
    Column("read_at", Instant, doc="When the source was last read into its data table, with the types of its cells."),
    UniqueConstraint("name_key", "version"),
    UniqueConstraint("data_table_name"),
    one_of("overdue_behavior", OverdueBehavior, "overdue_behavior"),
    sqlite_autoincrement=True,
)
partial_index("uq_runbooks_active", runbooks.c.name_key, where=runbooks.c.is_active == true(), unique=True)

runbook_automation_settings = Table(
    "runbook_automation_settings",
    metadata,
    Column("runbook_key", FoldedKey, primary_key=True, doc="The runbook's name folded for comparison."),
    Column("runbook_name", Unicode(100), nullable=False, doc="Name of the runbook."),
    Column("automation_enabled", Boolean, nullable=False, doc="Whether the scheduler queries the source."),
    Column("enabled_at", Instant, doc="When it was last switched on."),
    Column("enabled_by", Unicode(200), doc="Who switched it on."),
    Column("disabled_at", Instant, doc="When it was last switched off."),
    Column("disabled_by", Unicode(200), doc="Who switched it off."),
)

runbook_ticks = Table(
    "runbook_ticks",
    metadata,
    Column("runbook_key", FoldedKey, primary_key=True, doc="The runbook's name folded for comparison."),
    Column("runbook_name", Unicode(100), nullable=False, doc="Name of the runbook."),
    Column("runbook_version", Integer, nullable=False, doc="Version that was active."),
    Column("started_at", Instant, nullable=False, doc="When the last tick began with this runbook."),
    Column("finished_at", Instant, nullable=False, doc="When it was through with it."),
    Column("queried", Boolean, nullable=False, doc="Whether the source was asked and answered."),
    Column("rows_read", Integer, nullable=False, doc="Rows that the source returned."),
    Column("rows_set_aside", Integer, nullable=False, doc="Rows that could not be used."),
    Column("rows_ignored", Integer, nullable=False, doc="Rows with a time whose batch has ended, which takes nobody."),
    Column("batches_created", Integer, nullable=False, doc="Batches seen for the first time."),
    Column("batches_rescheduled", Integer, nullable=False, doc="Batches that got another start time."),
    Column("batches_held", Integer, nullable=False, doc="Batches that this tick held, until a person approves."),
    Column(
        "members_added",
        Integer,
        nullable=False,
        doc="Members that joined a batch, new or not; those that moved there are among them.",
    ),
    Column(
        "members_removed", Integer, nullable=False, doc="Members that left because the source no longer returns them."
    ),
    Column(
        "members_moved",
        Integer,
        nullable=False,
        doc="Members that left their batch because the source gives them another time.",
    ),
    Column("members_returned", Integer, nullable=False, doc="Removed members that came back."),
    Column("members_refreshed", Integer, nullable=False, doc="Members whose data changed."),
    Column("phases_dispatched", Integer, nullable=False, doc="Phases that came due."),
    Column("set_aside_json", UnicodeText, nullable=False, doc="Reasons with counts and sample rows, JSON."),
    Column("remarks_json", UnicodeText, nullable=False, doc="What else a person should see, a JSON array."),
)

member_exclusions = Table(
    "member_exclusions",
    metadata,
    id_column("Number of the exclusion."),
    Column("runbook_key", FoldedKey, nullable=False, doc="The runbook's name folded for comparison."),
    Column("member_key_fold", FoldedKey, nullable=False, doc="The member's key folded for comparison."),
    Column("runbook_name", Unicode(100), nullable=False, doc="Name of the runbook."),
    Column("member_key", Unicode(MAX_KEY_LENGTH), nullable=False, doc="The member's key."),
    Column("excluded_at", Instant, nullable=False, doc="When a person excluded it."),
    Column("excluded_by", Unicode(200), nullable=False, doc="Who did."),
    Column("reason", UnicodeText, nullable=False, doc="Why."),
    Column("included_at", Instant, doc="When a person included it again; empty while it is excluded."),
    UniqueConstraint("runbook_key", "member_key_fold"),
    sqlite_autoincrement=True,
)

member_inclusions = Table(
    "member_inclusions",
    metadata,
    Column("runbook_key", FoldedKey, primary_key=True, doc="The runbook's name folded for comparison."),
    Column("member_key_fold", FoldedKey, primary_key=True, doc="The member's key folded for comparison."),
    Column("runbook_name", Unicode(100), nullable=False, doc="Name of the runbook."),
    Column("member_key", Unicode(MAX_KEY_LENGTH), nullable=False, doc="The member's key."),
    Column("batch_time", Instant, nullable=False, doc="The time for which it is let in."),
    Column("included_at", Instant, nullable=False, doc="When a person said so."),
    Column("included_by", Unicode(200), nullable=False, doc="Who said so."),
    Column("reason", UnicodeText, doc="Why."),
    Column("applied_at", Instant, doc="When a tick let it in; empty while it waits."),
)

set_aside_keys = Table(
    "set_aside_keys",
    metadata,
    Column(
        "runbook_id", BigId, ForeignKey("runbooks.id"), primary_key=True, doc="Version with whose query it was read."
    ),
    Column("member_key_fold", FoldedKey, primary_key=True, doc="Key of a row that was set aside, folded."),
)

data_table_columns = Table(
    "data_table_columns",
    metadata,
    id_column("Number of the column."),
    Column("table_name", Unicode(63), nullable=False, doc="A data table, as in runbooks.data_table_name."),
    Column("source_name", UnicodeText, nullable=False, doc="Name of the column in the query's result."),
    Column("column_name", Unicode(63), nullable=False, doc="Name of the column in the data table."),
    UniqueConstraint("table_name", "column_name"),
    sqlite_autoincrement=True,
)

worker_functions = Table(
    "worker_functions",
    metadata,
    Column("worker_id", Unicode(100), primary_key=True, doc="The worker that announced the function."),
    Column("function_name", Unicode(200), primary_key=True, doc="Name by which steps call it."),
    Column("parameters_json", UnicodeText, nullable=False, doc="Its parameters, a JSON array."),
    Column("announced_at", Instant, nullable=False, doc="When the worker last said so."),
)

Index("ix_worker_functions_function_name", worker_functions.c.function_name)
