"""The outbox: messages that are written with the state that causes them and sent afterwards (rule M1)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Executable,
    Insert,
    Integer,
    Update,
    delete,
    func,
    select,
    type_coerce,
    update,
)

from matoolkit.store.schema import outbox
from matoolkit.store.sql.prepared import Drafting, Named, prepared
from matoolkit.store.sql.statements import among, chosen_once, columns_of
from matoolkit.store.sql.transaction import Transaction

_WRITTEN = ("topic", "message_id", "message_type", "body", "properties_json", "not_before")


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to be sent; without `not_before` at once."""

    topic: str
    message_id: str
    message_type: str
    body: str
    properties_json: str = "{}"
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A message that waits to be sent."""

    id: int
    topic: str
    message_id: str
    message_type: str
    body: str
    properties_json: str
    created_at: datetime
    not_before: datetime
    tries: int


@dataclass(frozen=True, slots=True)
class Claim:
    """The right of one process to send messages, until it runs out."""

    token: str
    until: datetime


def add_messages(
    tx: Transaction, messages: Sequence[NewMessage], at: datetime, claim: Claim | None = None
) -> list[OutboxRow]:
    """Write messages in their order, those that wait already left out, and return the ones written.

    A process that will send them itself right after the commit claims them at once.
    """
    if not messages:
        return []
    unique: dict[tuple[str, str], NewMessage] = {}
    for message in messages:
        unique.setdefault((message.topic, message.message_id), message)
    rows = [
        (position, *(getattr(message, name) for name in _WRITTEN[:-1]), message.not_before or at)
        for position, message in enumerate(unique.values())
    ]
    alike = Named(
        created_at=at,
        claim_token=claim.token if claim else None,
        claimed_until=claim.until if claim else at,
        tries=1 if claim else 0,
    )
    return _in_order(tx.rows(OutboxRow, _added(tx, rows, alike)))


@prepared
def _added(draft: Drafting, rows: Any, alike: Named) -> Insert:
    given = draft.table_of({"position": Integer()} | {name: outbox.c[name].type for name in _WRITTEN}, rows)
    values: dict[str, ColumnElement[Any]] = {name: given.c[name] for name in _WRITTEN}
    values |= {name: type_coerce(value, outbox.c[name].type) for name, value in alike.items()}
    key = ["topic", "message_id"]
    statement = draft.insert_missing(outbox, values, given, key, order_by=given.c.position)
    return statement.returning(*columns_of(OutboxRow, outbox))


def claim_messages(tx: Transaction, claim: Claim, at: datetime, limit: int = 500) -> list[OutboxRow]:
    """Claim messages that no process is sending, oldest first; skip those that another process is claiming."""
    return _in_order(tx.rows(OutboxRow, _claimed(tx, claim.token, claim.until, at, limit=limit)))


@prepared
def _claimed(draft: Drafting, token: str, until: datetime, at: datetime, *, limit: int) -> Update:
    free = select(outbox.c.id).where(outbox.c.claimed_until <= at)
    oldest = draft.locking(free.order_by(outbox.c.claimed_until, outbox.c.id).limit(limit), outbox, skip_locked=True)
    return (
        update(outbox)
        .where(outbox.c.id.in_(chosen_once(oldest)), outbox.c.claimed_until <= at)
        .values(claim_token=token, claimed_until=until, tries=outbox.c.tries + 1)
        .returning(*columns_of(OutboxRow, outbox))
    )


def delete_sent(tx: Transaction, claim: Claim, ids: Collection[int]) -> list[int]:
    """Delete messages that were sent, if the claim on them still stands, and return which."""
    if not ids:
        return []
    return sorted(tx.values(_deleted(tx, claim.token, ids)))


@prepared
def _deleted(draft: Drafting, token: str, ids: Collection[int]) -> Executable:
    sent = delete(outbox).where(among(draft, outbox.c.id, ids), outbox.c.claim_token == token)
    return sent.returning(outbox.c.id)


def waiting_count(tx: Transaction) -> int:
    """Count the messages that wait to be sent."""
    return int(tx.values(select(func.count()).select_from(outbox))[0])


def _in_order(rows: list[OutboxRow]) -> list[OutboxRow]:
    return sorted(rows, key=lambda row: row.id)
