"""The tables of gates and of the sign-offs that open some of them."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, Table, Unicode, UnicodeText, and_

from matoolkit.domain.doors import Door
from matoolkit.domain.gates import GateKind
from matoolkit.domain.keys import MAX_KEY_LENGTH
from matoolkit.domain.states import SignOff, SignOffSubject
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
    Column("phase_execution_id", BigId, doc="Phase of that batch from which on it covers; empty for all of them."),
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
    Column("allowed", Integer, doc="How many members may have failed before a budget shuts again after this opening."),
    Column("swept_at", Instant, doc="When what follows its latest change was done: jobs taken back, or work woken."),
    Column("opened_at", Instant, doc="When it was opened; empty while it is shut."),
    Column("opened_by", Unicode(200), doc="Who opened it: a person, or a part of the system."),
    Column("opened_reason", UnicodeText, doc="Why a person opened it."),
    one_of("reach", Door, "reach"),
    Index("ix_gates_batch_id", "batch_id"),
    sqlite_autoincrement=True,
)
partial_index("ix_gates_unopened", gates.c.id, where=gates.c.opened_at.is_(None))
partial_index("ix_gates_phase", gates.c.phase_execution_id, where=gates.c.phase_execution_id.is_not(None))
# A batch waits for the approval of one thing at a time.
partial_index(
    "uq_gates_hold",
    gates.c.batch_id,
    where=and_(gates.c.opened_at.is_(None), gates.c.hold_key.is_not(None)),
    unique=True,
)

approvals = Table(
    "approvals",
    metadata,
    id_column("Number of the sign-off."),
    Column("batch_id", BigId, ForeignKey("batches.id"), nullable=False, doc="The batch."),
    Column("subject", OneOf(SignOffSubject), nullable=False, doc="What it is about: a phase, the init or a hold."),
    Column("phase_execution_id", BigId, doc="The phase, if it is about one."),
    Column("hold_key", Unicode(64), doc="Fingerprint of what a hold waits for, if it is about one."),
    Column("runbook_version", Integer, nullable=False, doc="Version that the batch followed; another one voids it."),
    Column("batch_start_time", Instant, doc="T at that time; another T voids it. Empty for a manual batch."),
    Column("digest", Unicode(100), nullable=False, doc="Fingerprint of exactly what was shown."),
    Column("covered_after", Integer, doc="It covers late joiners only: those who joined after this number."),
    Column("covered_no", Integer, nullable=False, doc="It covers members who had joined up to this number."),
    Column("members", Integer, nullable=False, doc="How many members were shown."),
    Column("decision", OneOf(SignOff), nullable=False, doc="Whether it approves or rejects."),
    Column("signed_by", Unicode(200), nullable=False, doc="Who signed."),
    Column("roles", Unicode(200), nullable=False, doc="Roles of that person then, separated by commas."),
    Column("is_signed_in", Boolean, nullable=False, doc="Whether a person had signed in; without Entra nobody does."),
    Column("signed_at", Instant, nullable=False, doc="When it was signed."),
    Column("reason", UnicodeText, doc="Why, in words."),
    Column("withdrawn_at", Instant, doc="When its author withdrew it."),
    Column("used_at", Instant, doc="When what it is about began; nothing voids it from then on."),
    one_of("subject", SignOffSubject, "subject"),
    one_of("decision", SignOff, "decision"),
    Index("ix_approvals_batch_id", "batch_id"),
    sqlite_autoincrement=True,
)
