"""Messages that are on their way to the orchestrator, as far as this database knows of them."""

from typing import Any

from sqlalchemy import Select, select, union_all

from matoolkit.store.schema import bus_messages, bus_recent_ids, outbox
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.transaction import Transaction


def messages_on_their_way(tx: Transaction, topic: str, *, limit: int) -> list[str]:
    """Return ids of messages of a topic that wait to be sent or to be handled, so many at most."""
    return tx.values(_waiting(tx, topic, limit=limit))


@prepared
def _waiting(_draft: Drafting, topic: str, *, limit: int) -> Select[Any]:
    both = union_all(*(select(table.c.message_id).where(table.c.topic == topic) for table in (bus_messages, outbox)))
    found = both.subquery("waiting")
    return select(found.c.message_id).order_by(found.c.message_id).limit(limit)


def knows_the_bus(tx: Transaction) -> bool:
    """Tell whether messages go through this database; on Service Bus nobody can look at them."""
    return bool(tx.values(_known(tx)))


@prepared
def _known(_draft: Drafting) -> Select[Any]:
    return select(bus_recent_ids.c.id).order_by(bus_recent_ids.c.id).limit(1)
