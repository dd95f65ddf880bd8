"""Tables that carry messages: the outbox, the SQL bus, dead letters."""

from sqlalchemy import (
    Column,
    Index,
    Integer,
    Table,
    Unicode,
    UnicodeText,
    UniqueConstraint,
    text,
)

from matoolkit.domain.delivery import MAX_DELIVERIES
from matoolkit.domain.states import DeadLetterStatus
from matoolkit.store.dialect.types import BigId, Instant, OneOf, id_column, one_of, only_where
from matoolkit.store.schema.metadata import metadata

outbox = Table(
    "outbox",
    metadata,
    id_column("Order in which messages were written."),
    Column("topic", Unicode(100), nullable=False, doc="Topic it goes to."),
    Column("message_id", Unicode(200), nullable=False, doc="Id of the message, derived from facts."),
    Column("message_type", Unicode(50), nullable=False, doc="Kind of message."),
    Column("body", UnicodeText, nullable=False, doc="The message, JSON."),
    Column("properties_json", UnicodeText, nullable=False, doc="Properties that subscriptions filter on, JSON."),
    Column("order_key", Unicode(100), doc="Not used: messages leave in no promised order."),
    Column("created_at", Instant, nullable=False, doc="When it was written."),
    Column("not_before", Instant, nullable=False, doc="When it may be delivered at the earliest."),
    Column("claimed_until", Instant, nullable=False, doc="Until then some process is sending it."),
    Column("claim_token", Unicode(36), doc="The claim of that process."),
    Column("tries", Integer, nullable=False, doc="How often a process tried to send it."),
    UniqueConstraint("topic", "message_id"),
    Index("ix_outbox_unclaimed", "claimed_until", "id"),
    Index("ix_outbox_order_key", "order_key", "id"),
    sqlite_autoincrement=True,
)

bus_messages = Table(
    "bus_messages",
    metadata,
    id_column("Order in which messages were published."),
    Column("topic", Unicode(100), nullable=False, doc="The topic."),
    Column("subscription", Unicode(100), nullable=False, doc="The subscription that gets this copy."),
    Column("message_id", Unicode(200), nullable=False, doc="Id of the message."),
    Column("message_type", Unicode(50), nullable=False, doc="Kind of message."),
    Column("body", UnicodeText, nullable=False, doc="The message, JSON."),
    Column("properties_json", UnicodeText, nullable=False, doc="Its properties, JSON."),
    Column("enqueued_at", Instant, nullable=False, doc="When it was published."),
    Column("visible_at", Instant, nullable=False, doc="When it can be received: later if scheduled or locked."),
    Column("expires_at", Instant, nullable=False, doc="When it becomes a dead letter if no process took it."),
    Column("lock_token", Unicode(36), doc="The lock of the consumer that has it; empty when none does."),
    Column("delivery_count", Integer, nullable=False, doc="How often it was received."),
    Index("ix_bus_messages_visible", "topic", "subscription", "visible_at", "id"),
    Index("ix_bus_messages_undeliverable", "id", **only_where(text(f"delivery_count >= {MAX_DELIVERIES}"))),
    UniqueConstraint("topic", "message_id", name="uq_bus_messages_message"),
    sqlite_autoincrement=True,
)

bus_recent_ids = Table(
    "bus_recent_ids",
    metadata,
    id_column("Order in which ids were noted."),
    Column("topic", Unicode(100), nullable=False, doc="The topic."),
    Column("message_id", Unicode(200), nullable=False, doc="Id of a message published lately."),
    Column("published_at", Instant, nullable=False, doc="When; the duplicate window counts from here."),
    Column("publication", BigId, doc="Number of the publication that noted it, by which that one knows it as its own."),
    UniqueConstraint("topic", "message_id", name="uq_bus_recent_ids_message"),
)

dead_letters = Table(
    "dead_letters",
    metadata,
    id_column("Number of the dead letter."),
    Column("topic", Unicode(100), nullable=False, doc="Topic it was published to."),
    Column("subscription", Unicode(100), nullable=False, doc="Subscription that could not handle it."),
    Column("message_id", Unicode(200), nullable=False, doc="Id of the message."),
    Column("message_type", Unicode(50), nullable=False, doc="Kind of message."),
    Column("body", UnicodeText, nullable=False, doc="The message, JSON."),
    Column("properties_json", UnicodeText, nullable=False, doc="Its properties, JSON."),
    Column("reason", UnicodeText, nullable=False, doc="Why it is here, in a word or two."),
    Column("description", UnicodeText, doc="Why it is here, at length."),
    Column("delivery_count", Integer, nullable=False, doc="How often it was tried."),
    Column("enqueued_at", Instant, nullable=False, doc="When it was published."),
    Column("dead_lettered_at", Instant, nullable=False, doc="When it was given up."),
    Column("status", OneOf(DeadLetterStatus), nullable=False, doc="What became of it."),
    Column("resolved_at", Instant, doc="When a person resent or discarded it."),
    Column("resolved_by", Unicode(200), doc="Who did."),
    Column("resent_message_id", Unicode(200), doc="Id under which it was sent again."),
    UniqueConstraint("topic", "subscription", "message_id", "enqueued_at", name="uq_dead_letters_message"),
    one_of("status", DeadLetterStatus, "status"),
    Index("ix_dead_letters_status", "status", "id"),
    sqlite_autoincrement=True,
)
