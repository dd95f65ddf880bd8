"""The SQL bus's tables: messages that wait in subscriptions, and the ids of those published lately (rule M8).

Receiving a message locks it: `visible_at` moves into the future, and the row gets a token of its own. Settling needs
that token. When the lock has run out, the message is received again under another token, so a slow process cannot
settle it.
"""

import secrets
from collections.abc import Collection, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Delete,
    Executable,
    Select,
    Table,
    Update,
    and_,
    delete,
    func,
    literal_column,
    select,
    type_coerce,
    update,
)

from matoolkit.domain.delivery import MAX_DELIVERIES
from matoolkit.ports import Received, Subscription
from matoolkit.records import record
from matoolkit.store.deadletters import NewDeadLetter, keep_dead_letters
from matoolkit.store.schema import bus_messages, bus_recent_ids
from matoolkit.store.sql.prepared import Drafting, Ready, prepared
from matoolkit.store.sql.statements import among, columns_of, insert_each
from matoolkit.store.sql.transaction import Transaction
from matoolkit.telemetry.tracing import traceparent_in

# What is received of a message, in the order of `Received`; its id is the handle, and this is one more delivery.
_RECEIVED = (
    bus_messages.c.id.label("handle"),
    bus_messages.c.message_id,
    bus_messages.c.message_type,
    bus_messages.c.body,
    (bus_messages.c.delivery_count + 1).label("delivery_count"),
)
# The limit is part of the text of the statement, so that the partial index applies.
_DELIVERED_TOO_OFTEN = bus_messages.c.delivery_count >= literal_column(str(MAX_DELIVERIES))
_BEYOND_ALL_IDS = 2**63 - 1
# Enough bits that no two publications of one message get the same number.
_PUBLICATION_BITS = 62


@record
class NewQueued:
    """A message for one subscription."""

    topic: str
    subscription: str
    message_id: str
    message_type: str
    body: str
    properties_json: str
    visible_at: datetime
    expires_at: datetime


# A pile goes to few subscriptions, mostly at once.
_OFTEN_ALIKE = ("topic", "subscription", "message_type", "properties_json", "visible_at", "expires_at")


@record
class QueuedRow:
    """A message in a subscription."""

    id: int
    topic: str
    subscription: str
    message_id: str
    message_type: str
    body: str
    properties_json: str
    delivery_count: int
    enqueued_at: datetime


def enqueue(tx: Transaction, messages: Sequence[NewQueued], at: datetime, *, forget_before: datetime) -> int:
    """Put messages into their subscriptions in their order, and say how many.

    An id that its topic has seen since `forget_before` is a duplicate, and its message is dropped.
    """
    first: dict[str, dict[str, NewQueued]] = {}
    for message in messages:
        first.setdefault(message.topic, {}).setdefault(message.message_id, message)
    values = {"enqueued_at": at, "delivery_count": 0, "lock_token": None}
    count = 0
    # All publishers lock ids in the same order, or two could wait for each other (deadlock).
    for topic, of_topic in sorted(first.items()):
        new = _remember(tx, topic, sorted(of_topic), at, forget_before)
        if wanted := [message for message_id, message in of_topic.items() if message_id in new]:
            # A message that still waits is the same message, even after the duplicate window (rule M3).
            key = ("topic", "message_id")
            count += tx.changed(insert_each(tx, bus_messages, wanted, values, key, often_alike=_OFTEN_ALIKE))
    return count


def _remember(tx: Transaction, topic: str, ids: Collection[str], at: datetime, forget_before: datetime) -> set[str]:
    """Note the ids that were not published lately, and return them."""
    ours = secrets.randbits(_PUBLICATION_BITS)
    if tx.changed(_noted(tx, topic, ids, at, ours)) == len(ids):
        return set(ids)
    # Rare: some ids are known. Ids that are too old do not count as duplicates, so they are deleted and noted again; a
    # sweep may also have deleted one just now.
    tx.execute(_forgotten(tx, topic, ids, forget_before))
    tx.execute(_noted(tx, topic, ids, at, ours))
    return set(tx.values(_noted_by(tx, topic, ids, ours)))


@prepared
def _noted(draft: Drafting, topic: str, message_ids: Collection[str], at: datetime, publication: int) -> Executable:
    given = draft.values_of(bus_recent_ids.c.message_id.type, message_ids)
    written: dict[str, ColumnElement[Any]] = {
        "topic": type_coerce(topic, bus_recent_ids.c.topic.type),
        "message_id": given.c.value,
        "published_at": type_coerce(at, bus_recent_ids.c.published_at.type),
        "publication": type_coerce(publication, bus_recent_ids.c.publication.type),
    }
    return draft.insert_missing(bus_recent_ids, written, given, ("topic", "message_id"))


@prepared
def _noted_by(draft: Drafting, topic: str, message_ids: Collection[str], publication: int) -> Select[Any]:
    named = (bus_recent_ids.c.topic == topic, among(draft, bus_recent_ids.c.message_id, message_ids))
    return select(bus_recent_ids.c.message_id).where(*named, bus_recent_ids.c.publication == publication)


@prepared
def _forgotten(draft: Drafting, topic: str, message_ids: Collection[str], before: datetime) -> Delete:
    return delete(bus_recent_ids).where(
        bus_recent_ids.c.topic == topic,
        among(draft, bus_recent_ids.c.message_id, message_ids),
        bus_recent_ids.c.published_at < before,
    )


def lock_due(
    tx: Transaction,
    subscription: Subscription,
    token: str,
    at: datetime,
    *,
    until: datetime,
    most: int,
    is_traced: bool = False,
) -> list[Received]:
    """Lock messages that are due and not locked, oldest first; each lock counts as a delivery.

    Only a process that records spans reads the properties, for the traceparent among them.
    """
    due = _due(tx, subscription.topic, subscription.name, at, most=most, is_traced=is_traced)
    if is_traced:

        def traced(properties_json: str, handle: int, name: str, kind: str, body: str, deliveries: int) -> Received:
            sender = traceparent_in(properties_json)
            return Received(subscription, token, handle, name, kind, body, deliveries, sender)

        found = tx.rows(traced, due)
    else:
        found = tx.rows(Received, due, subscription=subscription, lock_token=token, traceparent=None)
    received = sorted(found, key=attrgetter("handle"))
    if received:
        tx.execute(_locked(tx, [message.handle for message in received], token, until))
    return received


@prepared
def _due(draft: Drafting, topic: str, subscription: str, at: datetime, *, most: int, is_traced: bool) -> Select[Any]:
    wanted = (bus_messages.c.properties_json, *_RECEIVED) if is_traced else _RECEIVED
    due = select(*wanted).where(*_is_due(topic, subscription, at))
    oldest = due.order_by(bus_messages.c.visible_at, bus_messages.c.id).limit(most)
    return draft.locking(oldest, bus_messages, skip_locked=True)


@prepared
def _locked(draft: Drafting, ids: Collection[int], token: str, until: datetime) -> Update:
    # The rows cannot have changed since they were read: other processes skip locked rows.
    ours = update(bus_messages).where(among(draft, bus_messages.c.id, ids))
    return ours.values(lock_token=token, visible_at=until, delivery_count=bus_messages.c.delivery_count + 1)


def undo_receipt(tx: Transaction, subscription: Subscription, token: str, at: datetime) -> None:
    """Give back what was locked under a token and reached nobody, so that it does not count as a delivery."""
    tx.execute(_receipt_undone(tx, subscription.topic, subscription.name, token, at))


@prepared
def _receipt_undone(_draft: Drafting, topic: str, subscription: str, token: str, at: datetime) -> Update:
    of_it = (bus_messages.c.topic == topic, bus_messages.c.subscription == subscription)
    undone = update(bus_messages).where(*of_it, bus_messages.c.lock_token == token)
    return undone.values(lock_token=None, visible_at=at, delivery_count=bus_messages.c.delivery_count - 1)


def has_due(tx: Transaction, topic: str, subscription: str, at: datetime) -> bool:
    """Tell whether a message is due, without locking anything."""
    return bool(tx.values(_one_due(tx, topic, subscription, at)))


@prepared
def _one_due(_draft: Drafting, topic: str, subscription: str, at: datetime) -> Select[Any]:
    return select(bus_messages.c.id).where(*_is_due(topic, subscription, at)).limit(1)


def remove_locked(tx: Transaction, token: str, ids: Collection[int]) -> int:
    """Remove messages that are still under a lock, and say how many."""
    return tx.changed(_locked_removed(tx, token, ids))


@prepared
def _locked_removed(draft: Drafting, token: str, ids: Collection[int]) -> Executable:
    return delete(bus_messages).where(*_is_ours(draft, token, ids))


def remove_untouched(tx: Transaction, topic: str, message_ids: Collection[str]) -> list[str]:
    """Remove messages that were never received, and return their ids."""
    if not message_ids:
        return []
    return sorted(tx.values(_untouched_removed(tx, topic, message_ids)))


@prepared
def _untouched_removed(draft: Drafting, topic: str, message_ids: Collection[str]) -> Executable:
    named = (bus_messages.c.topic == topic, among(draft, bus_messages.c.message_id, message_ids))
    # A worker may have started a job that was received and given back, so such a job is not taken back.
    statement = delete(bus_messages).where(*named, bus_messages.c.delivery_count == 0)
    return statement.returning(bus_messages.c.message_id)


def extend_locks(tx: Transaction, token: str, ids: Collection[int], until: datetime) -> set[int]:
    """Extend the locks of messages that are still ours, and return which."""
    return set(tx.values(_extended(tx, token, ids, until)))


@prepared
def _extended(draft: Drafting, token: str, ids: Collection[int], until: datetime) -> Executable:
    ours = update(bus_messages).where(*_is_ours(draft, token, ids))
    return ours.values(visible_at=until).returning(bus_messages.c.id)


def unlock(tx: Transaction, token: str, ids: Collection[int], at: datetime) -> None:
    """Give messages back that are still under a lock, due again from then on."""
    tx.execute(_unlocked(tx, token, ids, at))


@prepared
def _unlocked(draft: Drafting, token: str, ids: Collection[int], at: datetime) -> Executable:
    ours = update(bus_messages).where(*_is_ours(draft, token, ids))
    return ours.values(lock_token=None, visible_at=at)


def unlock_all(tx: Transaction, at: datetime) -> int:
    """Release all locks, and return how many messages were locked."""
    locked = (bus_messages.c.lock_token.is_not(None), bus_messages.c.visible_at > at)
    return tx.changed(update(bus_messages).where(*locked).values(lock_token=None, visible_at=at))


def bury_locked(tx: Transaction, token: str, ids: Collection[int], reason: str, description: str) -> int:
    """Make messages that are still under a lock dead letters."""
    statement = delete(bus_messages).where(*_is_ours(tx, token, ids))
    rows = tx.rows(QueuedRow, statement.returning(*columns_of(QueuedRow, bus_messages)))
    return _bury(tx, rows, reason, description)


def bury_expired(tx: Transaction, at: datetime, most: int, *, published_by: datetime) -> int:
    """Make dead letters of expired messages, except those that are being handled.

    Messages that were published after `published_by` cannot have expired.
    """
    rows = _take(tx, _expired(tx, at, published_by, most=most))
    return _bury(tx, rows, "TTLExpiredException", "no process took it in time")


@prepared
def _expired(draft: Drafting, at: datetime, published_by: datetime, *, most: int) -> Select[Any]:
    expired = (bus_messages.c.expires_at <= at, bus_messages.c.visible_at <= at)
    is_young = and_(bus_messages.c.enqueued_at > published_by, bus_messages.c.enqueued_at <= at)
    old = _ids(*expired, _before_the_first(bus_messages, is_young))
    return draft.locking(old.order_by(bus_messages.c.id).limit(most), bus_messages, skip_locked=True)


def bury_undeliverable(tx: Transaction, at: datetime, most: int) -> int:
    """Make messages that were delivered too often, and not settled, dead letters."""
    rows = _take(tx, _undeliverable(tx, at, most=most))
    return _bury(tx, rows, "MaxDeliveryCountExceeded", f"delivered {MAX_DELIVERIES} times and never settled")


@prepared
def _undeliverable(draft: Drafting, at: datetime, *, most: int) -> Select[Any]:
    given_up = _ids(_DELIVERED_TOO_OFTEN, bus_messages.c.visible_at <= at)
    return draft.locking(given_up.order_by(bus_messages.c.id).limit(most), bus_messages, skip_locked=True)


def forget_ids(tx: Transaction, at: datetime, *, published_before: datetime) -> int:
    """Forget ids that are too old to make a message a duplicate."""
    return tx.changed(_all_forgotten(tx, at, published_before))


@prepared
def _all_forgotten(_draft: Drafting, at: datetime, before: datetime) -> Delete:
    is_young = and_(bus_recent_ids.c.published_at >= before, bus_recent_ids.c.published_at <= at)
    is_old = bus_recent_ids.c.published_at < before
    return delete(bus_recent_ids).where(_before_the_first(bus_recent_ids, is_young), is_old)


def _before_the_first(table: Table, is_young: ColumnElement[bool]) -> ColumnElement[bool]:
    """Choose the rows before the first young one; a row from the future, after a wrong clock, is not young.

    Rows are numbered in the order of their times, so this needs no index of times, which every message would pay for
    (ADR 21).
    """
    first_young = select(table.c.id).where(is_young).order_by(table.c.id).limit(1).scalar_subquery()
    return table.c.id < func.coalesce(first_young, literal_column(str(_BEYOND_ALL_IDS)))


def queue_lengths(tx: Transaction) -> dict[tuple[str, str], int]:
    """Count the messages of each subscription."""
    names = (bus_messages.c.topic, bus_messages.c.subscription)
    counted = select(*names, func.count()).group_by(*names)
    return dict(tx.rows(lambda topic, name, count: ((topic, name), count), counted))


def _is_due(topic: str, subscription: str, at: datetime) -> tuple[ColumnElement[bool], ...]:
    return (
        bus_messages.c.topic == topic,
        bus_messages.c.subscription == subscription,
        bus_messages.c.visible_at <= at,
        bus_messages.c.expires_at > at,
        bus_messages.c.delivery_count < MAX_DELIVERIES,
    )


def _is_ours(tx: Drafting, token: str, ids: Collection[int]) -> tuple[ColumnElement[bool], ...]:
    return among(tx, bus_messages.c.id, ids), bus_messages.c.lock_token == token


def _ids(*conditions: ColumnElement[bool]) -> Select[Any]:
    return select(bus_messages.c.id).where(*conditions)


def _take(tx: Transaction, chosen: Ready) -> list[QueuedRow]:
    ids = tx.values(chosen)
    return tx.rows(QueuedRow, _taken(tx, ids)) if ids else []


@prepared
def _taken(draft: Drafting, ids: Collection[int]) -> Executable:
    taken = delete(bus_messages).where(among(draft, bus_messages.c.id, ids))
    return taken.returning(*columns_of(QueuedRow, bus_messages))


def _bury(tx: Transaction, rows: Sequence[QueuedRow], reason: str, description: str) -> int:
    """Keep dead letters with times of the calendar, for people; those of the bus are times of locks."""
    letters = [
        NewDeadLetter(
            row.topic, row.subscription, row.message_id, row.message_type, row.body, row.properties_json,
            reason, description, row.delivery_count, tx.calendar_time(row.enqueued_at),
        )
        for row in rows
    ]  # fmt: skip
    if letters:
        keep_dead_letters(tx, letters, tx.time())
    return len(letters)
