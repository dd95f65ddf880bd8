"""Tables of what is counted as it changes; each is written in the transaction of the moves that it counts."""

from sqlalchemy import BigInteger, Column, ForeignKey, Integer, Table

from matoolkit.domain.states import StepStatus
from matoolkit.store.dialect.types import BigId, OneOf, one_of
from matoolkit.store.schema.metadata import metadata

step_counts = Table(
    "step_counts",
    metadata,
    Column("phase_execution_id", BigId, ForeignKey("phase_executions.id"), primary_key=True, doc="The phase."),
    Column("step_index", Integer, primary_key=True, autoincrement=False, doc="Place of the step in it, from 0."),
    Column("status", OneOf(StepStatus), primary_key=True, doc="Where these steps are in their lives."),
    Column("steps", Integer, nullable=False, doc="How many there are."),
    one_of("status", StepStatus, "status"),
)

member_counts = Table(
    "member_counts",
    metadata,
    Column("batch_id", BigId, ForeignKey("batches.id"), primary_key=True, doc="The batch."),
    Column("counted_as", Integer, primary_key=True, autoincrement=False, doc="As in `batch_members`."),
    Column("members", Integer, nullable=False, doc="How many are counted so."),
)

batch_changes = Table(
    "batch_changes",
    metadata,
    Column("batch_id", BigId, ForeignKey("batches.id"), primary_key=True, doc="The batch."),
    Column(
        "changes",
        BigInteger,
        nullable=False,
        doc="Higher after each transaction that moved the batch, or anything in it; who watches needs only this.",
    ),
)
