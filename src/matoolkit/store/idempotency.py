"""Idempotency keys: a request that is sent twice is done once."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Delete, Select, Update, and_, delete, select, update

from matoolkit.errors import StoreBusy
from matoolkit.store.schema import idempotency_keys
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import insert_each, select_records
from matoolkit.store.sql.transaction import Store, Transaction

# No person has this name.
_NOBODY = "-"
_PATIENCE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A request that came with a key; while its response has no status it is at work, or it broke off."""

    actor: str
    idempotency_key: str
    request_hash: str
    response_status: int | None
    response_json: str | None
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class _NewRequest:
    actor: str
    idempotency_key: str
    request_hash: str
    created_at: datetime
    expires_at: datetime


def begin_request(
    tx: Transaction, actor: str, key: str, request_hash: str, at: datetime, expires_at: datetime
) -> RequestRow | None:
    """Reserve a key for a request; if it was used before, return that request instead.

    It runs in the transaction that does the work, or the first part of it, so a key is never kept for work that was
    undone.
    """
    tx.execute(_run_out(tx, actor, key, at))
    new = _NewRequest(actor, key, request_hash, at, expires_at)
    unused = ("actor", "idempotency_key")
    if tx.values(insert_each(tx, idempotency_keys, [new], {}, unused, (idempotency_keys.c.actor,))):
        return None
    return tx.rows(RequestRow, _made(tx, actor, key))[0]


def require_writable(store: Store) -> None:
    """Write a key and delete it again: that fails if the database is full or read-only.

    If another writer holds the lock for long, the database can evidently be written to.
    """
    with suppress(StoreBusy), store.transaction(patience_seconds=_PATIENCE_SECONDS) as tx:
        at = tx.lock_time()
        begin_request(tx, _NOBODY, _NOBODY, "", at, at)
        tx.execute(_run_out(tx, _NOBODY, _NOBODY, at))


@prepared
def _run_out(_draft: Drafting, actor: str, key: str, at: datetime) -> Delete:
    return delete(idempotency_keys).where(_is_key(actor, key), idempotency_keys.c.expires_at <= at)


@prepared
def _made(_draft: Drafting, actor: str, key: str) -> Select[Any]:
    return select_records(RequestRow, idempotency_keys).where(_is_key(actor, key))


def finish_request(tx: Transaction, actor: str, key: str, status: int | None, response_json: str) -> bool:
    """Keep the answer for when the request is sent again; without a status it is how far the request has come."""
    return bool(tx.changed(_answered(tx, actor, key, status, response_json)))


@prepared
def _answered(_draft: Drafting, actor: str, key: str, status: int | None, response_json: str) -> Update:
    unanswered = idempotency_keys.c.response_status.is_(None)
    statement = update(idempotency_keys).where(_is_key(actor, key), unanswered)
    return statement.values(response_status=status, response_json=response_json)


def have_requests_run_out(tx: Transaction, at: datetime) -> bool:
    """Tell whether there are keys to forget."""
    return bool(tx.values(_one_run_out(tx, at)))


@prepared
def _one_run_out(_draft: Drafting, at: datetime) -> Select[Any]:
    return select(idempotency_keys.c.actor).where(idempotency_keys.c.expires_at <= at).limit(1)


def forget_requests(tx: Transaction, at: datetime) -> int:
    """Forget keys that have run out."""
    return tx.changed(delete(idempotency_keys).where(idempotency_keys.c.expires_at <= at))


def _is_key(actor: str, key: str) -> ColumnElement[bool]:
    return and_(idempotency_keys.c.actor == actor, idempotency_keys.c.idempotency_key == key)
