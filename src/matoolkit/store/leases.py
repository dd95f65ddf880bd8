"""Leases: work that only one process may do at a time (rule T10).

A lease runs out by the database's clock, so the clocks of the processes do not matter. Every change of holder
gives a larger token; a transaction that confirms its lease keeps it from changing hands until it ends.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, Update, and_, literal_column, select, update

from matoolkit.errors import LeaseLost
from matoolkit.store.schema import leases
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import columns_of, insert_each, select_records
from matoolkit.store.sql.transaction import Transaction

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)  # when a lease that was never held ran out


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as its holder knows it."""

    name: str
    holder: str
    token: int
    expires_at: datetime


def acquire_lease(tx: Transaction, name: str, holder: str, length: timedelta) -> Lease | None:
    """Take a free lease; return None while another process holds it."""
    _make_sure_it_exists(tx, name)
    if not tx.values(_locked_if_free(tx, name)):
        return None
    # Read the time only now: waiting for the lock may have taken long, and a lease begins when it is taken.
    now = tx.lock_time()
    return next(iter(tx.rows(Lease, _taken(tx, name, holder, now, now + length))), None)


@prepared
def _locked_if_free(draft: Drafting, name: str) -> Select[Any]:
    return draft.locking(select(leases.c.token).where(_is_free(draft, name)), leases)


@prepared
def _taken(draft: Drafting, name: str, holder: str, now: datetime, until: datetime) -> Update:
    # A larger token for every holder: a former holder can confirm nothing any more (fencing, rule T10).
    values = {"holder": holder, "token": leases.c.token + 1, "acquired_at": now, "expires_at": until}
    return update(leases).where(_is_free(draft, name)).values(values).returning(*columns_of(Lease, leases))


def renew_lease(tx: Transaction, lease: Lease, length: timedelta) -> Lease:
    """Make a lease that is still held last longer from now on."""
    confirm_lease(tx, lease)
    # Waiting for the lock may have lasted until the lease ran out, so time and holder are read again.
    renewed = tx.rows(Lease, _extended(tx, lease.name, lease.token, tx.lock_time() + length))
    if not renewed:
        raise LeaseLost(lease.name, lease.holder)
    return renewed[0]


@prepared
def _extended(draft: Drafting, name: str, token: int, until: datetime) -> Update:
    held = update(leases).where(_is_held(draft, name, token))
    return held.values(expires_at=until).returning(*columns_of(Lease, leases))


def confirm_lease(tx: Transaction, lease: Lease) -> None:
    """Make sure that the lease is held, and stays so until the transaction ends; else refuse to go on."""
    if not tx.values(_locked_if_held(tx, lease.name, lease.token)):
        raise LeaseLost(lease.name, lease.holder)


@prepared
def _locked_if_held(draft: Drafting, name: str, token: int) -> Select[Any]:
    return draft.locking(select(leases.c.token).where(_is_held(draft, name, token)), leases)


def release_lease(tx: Transaction, lease: Lease) -> bool:
    """Let a lease go before it runs out; says whether it was still held."""
    return bool(tx.changed(update(leases).where(_is_held(tx, lease.name, lease.token)).values(expires_at=tx.now())))


def held_leases(tx: Transaction) -> list[Lease]:
    """Return the leases that are held."""
    query = select_records(Lease, leases).where(leases.c.expires_at > tx.now())
    return tx.rows(Lease, query.order_by(leases.c.name))


def known_leases(tx: Transaction) -> list[Lease]:
    """Return the leases that a process holds or has held, by name."""
    return tx.rows(Lease, _known(tx))


@prepared
def _known(_draft: Drafting) -> Select[Any]:
    return select_records(Lease, leases).where(leases.c.token > literal_column("0")).order_by(leases.c.name)


def _is_held(tx: Drafting, name: str, token: int) -> ColumnElement[bool]:
    return and_(leases.c.name == name, leases.c.token == token, leases.c.expires_at > tx.now())


def _is_free(tx: Drafting, name: str) -> ColumnElement[bool]:
    return and_(leases.c.name == name, leases.c.expires_at <= tx.now())


def _make_sure_it_exists(tx: Transaction, name: str) -> None:
    new = Lease(name, "", 0, _LONG_AGO)
    tx.execute(insert_each(tx, leases, [new], {"acquired_at": _LONG_AGO}, ("name",)))
