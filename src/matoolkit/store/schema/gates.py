"""The table of gates."""

from sqlalchemy import Column, ForeignKey, Index, Table, Unicode, UnicodeText, and_

from matoolkit.domain.gates import Door, GateKind
from matoolkit.domain.keys import MAX_KEY_LENGTH
from matoolkit.store.dialect.types import BigId, FoldedKey, Instant, OneOf, id_column, one_of, partial_index
from matoolkit.store.schema.metadata import metadata

gates = Table(
    "gates",
    metadata,
    id_column("Number of the gate."),
    Column("kind", OneOf(GateKind), nullable=False, doc="What shut it."),
    Column("reach", OneOf(Door), nullable=False, doc="Which door it shuts; `send` includes `start`."),
    Column("worker_id", Unicode(100), doc="Worker whose jobs it covers; with no scope at all it covers everything."),
    Column("runbook_name", Unicode(100), doc="Runbook that it covers, or whose member it covers."),
    Column("batch_id", BigId, ForeignKey("batches.id"), doc="Batch that it covers."),
    Column("member_key", Unicode(MAX_KEY_LENGTH), doc="Key of the person that it covers, as it was given."),
    Column("member_key_fold", FoldedKey, doc="That key, folded for comparison."),
    Column("shut_from", Instant, nullable=False, doc="From when it is shut."),
    Column("shut_until", Instant, doc="Until when it is shut, if that is known."),
    Column("shut_by", Unicode(200), nullable=False, doc="Who shut it: a person, or a part of the system."),
    Column("reason", UnicodeText, nullable=False, doc="Why it is shut, in words."),
    Column("hold_key", Unicode(64), doc="Fingerprint of exactly what waits for approval; only holds have one."),
    Column("shown_json", UnicodeText, doc="What waits for approval, for people to see, JSON."),
    Column("approved_by", Unicode(200), doc="Who approved exactly that, before it is carried out."),
    Column("approved_at", Instant, doc="When it was approved."),
    Column("swept_at", Instant, doc="When the jobs that it covers and nobody had received were taken back."),
    Column("opened_at", Instant, doc="When it was opened; empty while it is shut."),
    Column("opened_by", Unicode(200), doc="Who opened it: a person, or a part of the system."),
    Column("opened_reason", UnicodeText, doc="Why a person opened it."),
    one_of("reach", Door, "reach"),
    Index("ix_gates_batch_id", "batch_id"),
    sqlite_autoincrement=True,
)
partial_index("ix_gates_unopened", gates.c.id, where=gates.c.opened_at.is_(None))
# A batch waits for the approval of one thing at a time.
partial_index(
    "uq_gates_hold",
    gates.c.batch_id,
    where=and_(gates.c.opened_at.is_(None), gates.c.hold_key.is_not(None)),
    unique=True,
)
