"""The outbox: messages that are written with the state that causes them and sent afterwards (rule M1)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Integer, delete, exists, func, literal, or_, select, update

from matoolkit.store.dialect.types import Instant
from matoolkit.store.schema import outbox
from matoolkit.store.statements import among, chosen_once, columns_of
from matoolkit.store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to be sent; without `not_before` at once."""

    topic: str
    message_id: str
    message_type: str
    body: str
    properties_json: str = "{}"
    order_key: str | None = None
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
    order_key: str | None
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
    names = ("topic", "message_id", "message_type", "body", "properties_json", "order_key", "not_before")
    unique: dict[tuple[str, str], NewMessage] = {}
    for message in messages:
        unique.setdefault((message.topic, message.message_id), message)
    rows = [
        (position, *(getattr(message, name) for name in names[:-1]), message.not_before or at)
        for position, message in enumerate(unique.values())
    ]
    kinds = {"position": Integer()} | {name: outbox.c[name].type for name in names}
    given = tx.table_of(kinds, rows)
    values = {name: given.c[name] for name in names} | {
        "created_at": literal(at, Instant),
        "claim_token": literal(claim.token if claim else None, outbox.c.claim_token.type),
        "claimed_until": literal(claim.until if claim else at, Instant),
        "tries": literal(1 if claim else 0),
    }
    statement = tx.insert_missing(outbox, values, given, ["topic", "message_id"], order_by=given.c.position)
    return _in_order(tx.rows(OutboxRow, statement.returning(*columns_of(OutboxRow, outbox))))


def claim_messages(tx: Transaction, claim: Claim, at: datetime, limit: int = 500) -> list[OutboxRow]:
    """Claim messages that nobody is sending, oldest first; what another process is claiming is passed by."""
    free = select(outbox.c.id).where(outbox.c.claimed_until <= at)
    oldest = tx.locking(free.order_by(outbox.c.claimed_until, outbox.c.id).limit(limit), outbox, skip_locked=True)
    statement = (
        update(outbox)
        .where(outbox.c.id.in_(chosen_once(oldest)), outbox.c.claimed_until <= at)
        .values(claim_token=claim.token, claimed_until=claim.until, tries=outbox.c.tries + 1)
        .returning(*columns_of(OutboxRow, outbox))
    )
    return _in_order(tx.rows(OutboxRow, statement))


def out_of_turn(tx: Transaction, claim: Claim, ids: Collection[int]) -> list[int]:
    """Return those of the claimed messages that must wait: an older one with the same order key is not claimed."""
    older = outbox.alias()
    query = select(outbox.c.id).where(
        among(tx, outbox.c.id, ids),
        exists().where(
            older.c.order_key == outbox.c.order_key,
            older.c.id < outbox.c.id,
            or_(older.c.claim_token.is_(None), older.c.claim_token != claim.token),
        ),
    )
    return tx.values(query)


def delete_sent(tx: Transaction, claim: Claim, ids: Collection[int]) -> list[int]:
    """Delete messages that were sent, if the claim on them still stands, and return which."""
    if not ids:
        return []
    statement = delete(outbox).where(among(tx, outbox.c.id, ids), outbox.c.claim_token == claim.token)
    return sorted(tx.values(statement.returning(outbox.c.id)))


def remove_unsent(tx: Transaction, topic: str, message_ids: Collection[str]) -> list[str]:
    """Remove messages that nobody can have sent, and return their ids."""
    if not message_ids:
        return []
    named = (outbox.c.topic == topic, among(tx, outbox.c.message_id, message_ids))
    # A claim that was let go sent nothing; after a second one nobody knows what became of the first.
    untried = (outbox.c.claim_token.is_(None), outbox.c.tries <= 1)
    return sorted(tx.values(delete(outbox).where(*named, *untried).returning(outbox.c.message_id)))


def unclaim(tx: Transaction, claim: Claim, at: datetime, ids: Collection[int]) -> int:
    """Let go of messages that were claimed and not sent, for the next relay to try."""
    mine = update(outbox).where(among(tx, outbox.c.id, ids), outbox.c.claim_token == claim.token)
    return tx.changed(mine.values(claim_token=None, claimed_until=at))


def waiting_count(tx: Transaction) -> int:
    """Count the messages that wait to be sent."""
    return int(tx.values(select(func.count()).select_from(outbox))[0])


def _in_order(rows: list[OutboxRow]) -> list[OutboxRow]:
    return sorted(rows, key=lambda row: row.id)
