"""People as others name them: by a key, a part of it, a number, or an address that stands in their row."""

from dataclasses import fields
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select

from matoolkit.domain.keys import folded
from matoolkit.store.enrolments import ENROLMENT, Enrolment
from matoolkit.store.schema import batch_members, batches
from matoolkit.store.sql.statements import contains
from matoolkit.store.sql.transaction import Transaction


def enrolments_of_key(tx: Transaction, key: str, limit: int = 100, *, batch_id: int | None = None) -> list[Enrolment]:
    """Return every batch of any runbook that a member is or was in, newest first."""
    return _newest(tx, batch_members.c.member_key_fold == folded(key), batch_id, limit)


def enrolments_numbered(tx: Transaction, member_id: int, *, batch_id: int | None = None) -> list[Enrolment]:
    """Return the member of a number, with its batch."""
    return _newest(tx, batch_members.c.id == member_id, batch_id, 1)


def enrolments_containing(tx: Transaction, part: str, *, before: int | None, limit: int) -> list[Enrolment]:
    """Return a page of members of all batches whose key contains a part, newest first, from before an id."""
    query = _enrolments().where(contains(batch_members.c.member_key_fold, folded(part)))
    if before is not None:
        query = query.where(batch_members.c.id < before)
    return tx.rows(Enrolment, query.order_by(batch_members.c.id.desc()).limit(limit))


def enrolments_with_value(
    tx: Transaction, value: str, limit: int, *, batch_id: int | None = None
) -> list[tuple[Enrolment, str]]:
    """Return members with a text as a whole value of their row, in any case, newest first, each with its row.

    No index helps: every row is read, at most of one batch if one is named.
    """
    query = _enrolments().add_columns(batch_members.c.data_json)
    query = query.where(contains(func.lower(batch_members.c.data_json), f'"{value.lower()}"'))
    if batch_id is not None:
        query = query.where(batch_members.c.batch_id == batch_id)
    size = len(fields(Enrolment))
    query = query.order_by(batch_members.c.id.desc()).limit(limit)
    return tx.rows(lambda *row: (Enrolment(*row[:size]), row[size]), query)


def _newest(tx: Transaction, condition: ColumnElement[bool], batch_id: int | None, limit: int) -> list[Enrolment]:
    query = _enrolments().where(condition)
    if batch_id is not None:
        query = query.where(batch_members.c.batch_id == batch_id)
    return tx.rows(Enrolment, query.order_by(batch_members.c.id.desc()).limit(limit))


def _enrolments() -> Select[Any]:
    return select(*ENROLMENT).join(batches, batches.c.id == batch_members.c.batch_id)
