"""Gates: what keeps work from going on has a table of its own, and holds move there (rule G10)."""

import sqlalchemy as sa
from alembic import op

from matoolkit.store.dialect.types import BigId, FoldedKey, Instant, only_where

revision = "0014"
down_revision = "0013"

_OF_HOLDS = ("held_at", "hold_reason", "hold_key", "hold_json")
_OF_APPROVALS = ("approved_hold_key", "approved_hold_by", "approved_hold_at")
_KINDS = ("called_off", "reschedule", "init", "late", "repeat")

# What is shown begins with its kind, and was written without spaces. No name of a kind needs quoting.
_KIND = " ".join(f"WHEN hold_json LIKE '{{\"kind\":\"{kind}\"%' THEN '{kind}'" for kind in _KINDS)
_MOVE = f"""
INSERT INTO gates (kind, reach, batch_id, shut_from, shut_by, reason, hold_key, shown_json, approved_by, approved_at)
SELECT CASE {_KIND} ELSE 'removals' END, 'start', id, held_at,
    CASE WHEN hold_json LIKE '{{"kind":"init"%' THEN 'orchestrator' ELSE 'scheduler' END,
    COALESCE(hold_reason, ''), COALESCE(hold_key, ''), hold_json,
    CASE WHEN approved_hold_key = hold_key THEN approved_hold_by END,
    CASE WHEN approved_hold_key = hold_key THEN approved_hold_at END
FROM batches WHERE held_at IS NOT NULL
"""  # noqa: S608


def upgrade() -> None:
    """Make the table, and move the holds that stand into it; of those that ended the audit log tells."""
    op.create_table(
        "gates",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("kind", sa.Unicode(20), nullable=False),
        sa.Column("reach", sa.Unicode(20), nullable=False),
        sa.Column("worker_id", sa.Unicode(100)),
        sa.Column("runbook_name", sa.Unicode(100)),
        sa.Column("batch_id", BigId),
        sa.Column("member_key", sa.Unicode(400)),
        sa.Column("member_key_fold", FoldedKey),
        sa.Column("shut_from", Instant(), nullable=False),
        sa.Column("shut_until", Instant()),
        sa.Column("shut_by", sa.Unicode(200), nullable=False),
        sa.Column("reason", sa.UnicodeText(), nullable=False),
        sa.Column("hold_key", sa.Unicode(64)),
        sa.Column("shown_json", sa.UnicodeText()),
        sa.Column("approved_by", sa.Unicode(200)),
        sa.Column("approved_at", Instant()),
        sa.Column("swept_at", Instant()),
        sa.Column("opened_at", Instant()),
        sa.Column("opened_by", sa.Unicode(200)),
        sa.Column("opened_reason", sa.UnicodeText()),
        sa.CheckConstraint("reach = 'start' OR reach = 'send'", name=op.f("ck_gates_reach")),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_gates_batch_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gates")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_gates_batch_id", "gates", ["batch_id"])
    op.create_index("ix_gates_unopened", "gates", ["id"], **only_where(sa.text("opened_at IS NULL")))
    standing = sa.text("opened_at IS NULL AND hold_key IS NOT NULL")
    op.create_index("uq_gates_hold", "gates", ["batch_id"], unique=True, **only_where(standing))
    op.execute(_MOVE)
    for name in (*_OF_HOLDS, *_OF_APPROVALS):
        op.drop_column("batches", name)
