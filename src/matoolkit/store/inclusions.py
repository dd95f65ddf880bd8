"""Members that people include although the scheduler keeps them outside (rules T5 and U3)."""

from collections.abc import Collection
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Select, Update, select, update

from matoolkit.domain.keys import folded
from matoolkit.store.schema import member_inclusions
from matoolkit.store.sql.prepared import Drafting, Named, prepared
from matoolkit.store.sql.statements import among, insert_each
from matoolkit.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Inclusion:
    """Somebody whom a person lets in at a time, and why."""

    runbook_name: str
    member_key: str
    batch_time: datetime
    included_at: datetime
    included_by: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Key:
    runbook_key: str
    member_key_fold: str


@dataclass(frozen=True, slots=True)
class _Waiting:
    member_key_fold: str
    batch_time: datetime


def include(tx: Transaction, inclusion: Inclusion) -> None:
    """Include a member at a time; this replaces an earlier inclusion."""
    key = _Key(folded(inclusion.runbook_name), folded(inclusion.member_key))
    values = {field.name: getattr(inclusion, field.name) for field in fields(Inclusion)} | {"applied_at": None}
    tx.execute(insert_each(tx, member_inclusions, [key], values, ("runbook_key", "member_key_fold")))
    tx.execute(_included(tx, key.runbook_key, key.member_key_fold, Named(values)))


@prepared
def _included(_draft: Drafting, runbook_key: str, member_key_fold: str, values: Named) -> Update:
    table = member_inclusions
    mine = (table.c.runbook_key == runbook_key, table.c.member_key_fold == member_key_fold)
    return update(table).where(*mine).values(values)


def waiting_inclusions(tx: Transaction, runbook_name: str) -> dict[str, datetime]:
    """Return the inclusions that no tick has applied yet, by folded key, with the time."""
    return {one.member_key_fold: one.batch_time for one in tx.rows(_Waiting, _waiting(tx, folded(runbook_name)))}


@prepared
def _waiting(_draft: Drafting, runbook_key: str) -> Select[Any]:
    table = member_inclusions
    query = select(table.c.member_key_fold, table.c.batch_time)
    return query.where(table.c.runbook_key == runbook_key, table.c.applied_at.is_(None))


def note_let_in(tx: Transaction, runbook_name: str, keys: Collection[str], at: datetime) -> None:
    """Note that people were let in; the keys are folded."""
    if keys:
        tx.execute(_let_in(tx, folded(runbook_name), keys, at))


@prepared
def _let_in(draft: Drafting, runbook_key: str, keys: Collection[str], at: datetime) -> Update:
    table = member_inclusions
    mine = (table.c.runbook_key == runbook_key, among(draft, table.c.member_key_fold, keys))
    return update(table).where(*mine, table.c.applied_at.is_(None)).values(applied_at=at)
