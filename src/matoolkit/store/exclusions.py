"""People whom a person keeps out of all batches of a runbook (rule U3)."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, Update, func, select, update

from matoolkit.domain.keys import folded
from matoolkit.store.schema import member_exclusions
from matoolkit.store.sql.prepared import Drafting, Named, prepared
from matoolkit.store.sql.statements import insert_each, select_records
from matoolkit.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Somebody whom a person keeps out, and why."""

    runbook_name: str
    member_key: str
    excluded_at: datetime
    excluded_by: str
    reason: str


@dataclass(frozen=True, slots=True)
class ExclusionRow(Exclusion):
    """An exclusion as it is stored."""

    id: int


@dataclass(frozen=True, slots=True)
class _Key:
    runbook_key: str
    member_key_fold: str


def exclude(tx: Transaction, exclusion: Exclusion) -> None:
    """Keep somebody out; this replaces an earlier exclusion that has ended."""
    key = _Key(folded(exclusion.runbook_name), folded(exclusion.member_key))
    values = {field.name: getattr(exclusion, field.name) for field in fields(Exclusion)} | {"included_at": None}
    tx.execute(insert_each(tx, member_exclusions, [key], values, ("runbook_key", "member_key_fold")))
    tx.execute(_excluded(tx, key.runbook_key, key.member_key_fold, Named(values)))


@prepared
def _excluded(_draft: Drafting, runbook_key: str, member_key_fold: str, values: Named) -> Update:
    table = member_exclusions
    mine = (table.c.runbook_key == runbook_key, table.c.member_key_fold == member_key_fold)
    return update(table).where(*mine).values(values)


def end_exclusion(tx: Transaction, runbook_name: str, fold: str, at: datetime) -> bool:
    """Let somebody in again, and return whether it was excluded."""
    return bool(tx.values(_ended(tx, folded(runbook_name), fold, at)))


@prepared
def _ended(_draft: Drafting, runbook_key: str, member_key_fold: str, at: datetime) -> Update:
    table = member_exclusions
    mine = (table.c.runbook_key == runbook_key, table.c.member_key_fold == member_key_fold)
    ended = update(table).where(*mine, table.c.included_at.is_(None)).values(included_at=at)
    return ended.returning(table.c.member_key_fold)


def excluded_keys(tx: Transaction, runbook_name: str) -> set[str]:
    """Return the folded keys of everybody who is excluded; while the runbook is locked the answer holds."""
    return set(tx.values(_keys(tx, folded(runbook_name))))


@prepared
def _keys(_draft: Drafting, runbook_key: str) -> Select[Any]:
    table = member_exclusions
    return select(table.c.member_key_fold).where(table.c.runbook_key == runbook_key, table.c.included_at.is_(None))


def exclusion_of(tx: Transaction, runbook_name: str, fold: str) -> Exclusion | None:
    """Return the exclusion of somebody, if it is excluded now."""
    its = member_exclusions.c.member_key_fold == fold
    query = select_records(Exclusion, member_exclusions).where(*_of(runbook_name), its)
    return next(iter(tx.rows(Exclusion, query)), None)


def exclusions_page(tx: Transaction, runbook_name: str, *, after: int = 0, limit: int = 100) -> list[ExclusionRow]:
    """Return one page of the people who are excluded, by id, from after the last id of the page before."""
    number = member_exclusions.c.id
    query = select_records(ExclusionRow, member_exclusions).where(*_of(runbook_name), number > after)
    return tx.rows(ExclusionRow, query.order_by(number).limit(limit))


def count_exclusions(tx: Transaction, runbook_name: str) -> int:
    """Count the people who are excluded."""
    count: int = tx.values(select(func.count()).select_from(member_exclusions).where(*_of(runbook_name)))[0]
    return count


def _of(runbook_name: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return member_exclusions.c.runbook_key == folded(runbook_name), member_exclusions.c.included_at.is_(None)
