"""Dead letters of both buses: kept until a person resends or discards them (rule M7)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Select, func, select

from matoolkit.domain.secrecy import job_without_secrets, known_secrets
from matoolkit.domain.states import DeadLetterStatus
from matoolkit.ids import parse_job_id
from matoolkit.store.catalogue import known_functions
from matoolkit.store.narrow_executions import stored_calls
from matoolkit.store.schema import dead_letters
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import (
    change,
    change_each,
    columns_of,
    insert_each,
    is_any,
    records_among,
    select_records,
)
from matoolkit.store.sql.transaction import Transaction

_OPEN = is_any(dead_letters.c.status, {DeadLetterStatus.OPEN})


@dataclass(frozen=True, slots=True)
class NewDeadLetter:
    """A message that could not be handled."""

    topic: str
    subscription: str
    message_id: str
    message_type: str
    body: str
    properties_json: str
    reason: str
    description: str | None
    delivery_count: int
    enqueued_at: datetime


@dataclass(frozen=True, slots=True)
class DeadLetterRow:
    """A dead letter as it is stored."""

    id: int
    topic: str
    subscription: str
    message_id: str
    message_type: str
    body: str
    properties_json: str
    reason: str
    description: str | None
    delivery_count: int
    enqueued_at: datetime
    dead_lettered_at: datetime
    status: DeadLetterStatus
    resolved_at: datetime | None
    resolved_by: str | None
    resent_message_id: str | None


@dataclass(frozen=True, slots=True)
class DeadLetterHead:
    """Which message a dead letter is, and why."""

    id: int
    message_id: str
    reason: str
    description: str | None


@dataclass(frozen=True, slots=True)
class Resend:
    """The id under which a dead letter is sent again."""

    id: int
    resent_message_id: str


def keep_dead_letters(tx: Transaction, letters: Sequence[NewDeadLetter], at: datetime) -> list[DeadLetterRow]:
    """Keep messages that were given up, jobs without their secrets; one that is reported again is kept once."""
    if not letters:
        return []
    letters = _without_secrets(tx, letters)
    key = ("topic", "subscription", "message_id", "enqueued_at")
    alike = {"dead_lettered_at": at, "status": DeadLetterStatus.OPEN}
    statement = insert_each(tx, dead_letters, letters, alike, key, columns_of(DeadLetterRow, dead_letters))
    kept = tx.rows(DeadLetterRow, statement)
    return sorted(kept, key=lambda letter: letter.id)


def _without_secrets(tx: Transaction, letters: Sequence[NewDeadLetter]) -> list[NewDeadLetter]:
    """Mask what is secret in jobs; they are tried again as their steps, never from what is kept here."""
    # A message under any other id is sent again as it is, so it is kept as it is.
    jobs = {letter.message_id: ref for letter in letters if (ref := parse_job_id(letter.message_id)) is not None}
    if not jobs:
        return list(letters)
    known = known_secrets((row.function_name, row.parameters_json) for row in known_functions(tx))
    kept = {
        (kind, call.id): call.params_json
        for kind in {ref.kind for ref in jobs.values()}
        for call in stored_calls(tx, kind, [ref.execution_id for ref in jobs.values() if ref.kind is kind])
    }
    return [
        letter
        if (ref := jobs.get(letter.message_id)) is None
        else replace(letter, body=job_without_secrets(letter.body, known, kept.get((ref.kind, ref.execution_id))))
        for letter in letters
    ]


def dead_letters_by_id(tx: Transaction, ids: Collection[int]) -> list[DeadLetterRow]:
    """Return dead letters, by id."""
    return records_among(tx, DeadLetterRow, dead_letters, dead_letters.c.id, ids)


def dead_letters_page(
    tx: Transaction,
    *,
    status: DeadLetterStatus = DeadLetterStatus.OPEN,
    before: int | None = None,
    limit: int = 100,
) -> list[DeadLetterRow]:
    """Return one page of dead letters, newest first, from before the last id of the page before."""
    query = select_records(DeadLetterRow, dead_letters).where(is_any(dead_letters.c.status, {status}))
    if before is not None:
        query = query.where(dead_letters.c.id < before)
    return tx.rows(DeadLetterRow, query.order_by(dead_letters.c.id.desc()).limit(limit))


def dead_letter_counts(tx: Transaction) -> dict[DeadLetterStatus, int]:
    """Count dead letters by status."""
    status = dead_letters.c.status
    counted = tx.rows(lambda *pair: pair, select(status, func.count()).group_by(status).order_by(status))
    return dict(counted)


def open_dead_letters(tx: Transaction, *, after: int = 0, limit: int = 1000) -> list[DeadLetterHead]:
    """Return open dead letters without their content, oldest first, from after the last id before."""
    return tx.rows(DeadLetterHead, _open(tx, after, limit=limit))


@prepared
def _open(_draft: Drafting, after: int, *, limit: int) -> Select[Any]:
    query = select_records(DeadLetterHead, dead_letters).where(_OPEN, dead_letters.c.id > after)
    return query.order_by(dead_letters.c.id).limit(limit)


def resend_dead_letters(tx: Transaction, resends: Sequence[Resend], by: str, at: datetime) -> list[int]:
    """Mark open dead letters as sent again."""
    values = {"status": DeadLetterStatus.RESENT, "resolved_at": at, "resolved_by": by}
    return change_each(tx, dead_letters, resends, values, _OPEN)


def discard_dead_letters(tx: Transaction, ids: Collection[int], by: str, at: datetime) -> list[int]:
    """Mark open dead letters as discarded."""
    values = {"status": DeadLetterStatus.DISCARDED, "resolved_at": at, "resolved_by": by}
    return change(tx, dead_letters, ids, values, _OPEN)
