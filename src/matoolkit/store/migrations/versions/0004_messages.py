"""Outbox, the SQL bus, dead letters."""

import sqlalchemy as sa
from alembic import op

from matoolkit.store.dialect.types import BigId, Instant, is_one_of, only_where

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the tables."""
    _create_outbox()
    _create_bus_messages()
    _create_bus_recent_ids()
    _create_dead_letters()


def _create_outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("topic", sa.Unicode(100), nullable=False),
        sa.Column("message_id", sa.Unicode(200), nullable=False),
        sa.Column("message_type", sa.Unicode(50), nullable=False),
        sa.Column("body", sa.UnicodeText(), nullable=False),
        sa.Column("properties_json", sa.UnicodeText(), nullable=False),
        sa.Column("order_key", sa.Unicode(100)),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("not_before", Instant(), nullable=False),
        sa.Column("claimed_until", Instant(), nullable=False),
        sa.Column("claim_token", sa.Unicode(36)),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
        sa.UniqueConstraint("topic", "message_id", name=op.f("uq_outbox_topic_message_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_outbox_unclaimed", "outbox", ["claimed_until", "id"])
    op.create_index("ix_outbox_order_key", "outbox", ["order_key", "id"])


def _create_bus_messages() -> None:
    op.create_table(
        "bus_messages",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("topic", sa.Unicode(100), nullable=False),
        sa.Column("subscription", sa.Unicode(100), nullable=False),
        sa.Column("message_id", sa.Unicode(200), nullable=False),
        sa.Column("message_type", sa.Unicode(50), nullable=False),
        sa.Column("body", sa.UnicodeText(), nullable=False),
        sa.Column("properties_json", sa.UnicodeText(), nullable=False),
        sa.Column("enqueued_at", Instant(), nullable=False),
        sa.Column("visible_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.Column("lock_token", sa.Unicode(36)),
        sa.Column("delivery_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bus_messages")),
        sa.UniqueConstraint("topic", "message_id", name=op.f("uq_bus_messages_message")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_bus_messages_undeliverable", "bus_messages", ["id"], **only_where(sa.text("delivery_count >= 10"))
    )
    op.create_index("ix_bus_messages_visible", "bus_messages", ["topic", "subscription", "visible_at", "id"])


def _create_bus_recent_ids() -> None:
    op.create_table(
        "bus_recent_ids",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("topic", sa.Unicode(100), nullable=False),
        sa.Column("message_id", sa.Unicode(200), nullable=False),
        sa.Column("published_at", Instant(), nullable=False),
        sa.Column("publication", BigId),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bus_recent_ids")),
        sa.UniqueConstraint("topic", "message_id", name=op.f("uq_bus_recent_ids_message")),
    )


def _create_dead_letters() -> None:
    op.create_table(
        "dead_letters",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("topic", sa.Unicode(100), nullable=False),
        sa.Column("subscription", sa.Unicode(100), nullable=False),
        sa.Column("message_id", sa.Unicode(200), nullable=False),
        sa.Column("message_type", sa.Unicode(50), nullable=False),
        sa.Column("body", sa.UnicodeText(), nullable=False),
        sa.Column("properties_json", sa.UnicodeText(), nullable=False),
        sa.Column("reason", sa.UnicodeText(), nullable=False),
        sa.Column("description", sa.UnicodeText()),
        sa.Column("delivery_count", sa.Integer(), nullable=False),
        sa.Column("enqueued_at", Instant(), nullable=False),
        sa.Column("dead_lettered_at", Instant(), nullable=False),
        sa.Column("status", sa.Unicode(20), nullable=False),
        sa.Column("resolved_at", Instant()),
        sa.Column("resolved_by", sa.Unicode(200)),
        sa.Column("resent_message_id", sa.Unicode(200)),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dead_letters")),
        sa.CheckConstraint(is_one_of("status", "open", "resent", "discarded"), name=op.f("ck_dead_letters_status")),
        sa.UniqueConstraint("topic", "subscription", "message_id", "enqueued_at", name=op.f("uq_dead_letters_message")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_dead_letters_status", "dead_letters", ["status", "id"])
