"""Leases: work that only one process may do at a time (rule T10).

A lease runs out by the database's clock, so the clocks of the processes do not matter. Every change of holder
gives a larger token; a transaction that confirms its lease keeps it from changing hands until it ends.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, and_, select, update

from matoolkit.errors import LeaseLost
from matoolkit.store.schema import leases
from matoolkit.store.statements import columns_of, select_records
from matoolkit.store.transaction import Transaction

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)  # when a lease ran out that nobody has held yet


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as its holder knows it."""

    name: str
    holder: str
    token: int
    expires_at: datetime


def acquire_lease(tx: Transaction, name: str, holder: str, length: timedelta) -> Lease | None:
    """Take a lease that nobody holds; none is returned while somebody does."""
    _make_sure_it_exists(tx, name)
    is_free = and_(leases.c.name == name, leases.c.expires_at <= tx.now())
    if not tx.values(tx.locking(select(leases.c.token).where(is_free), leases)):
        return None
    # Asked only now: the lock may have been waited for, and a lease begins when it is taken.
    now = tx.time()
    statement = (
        update(leases)
        .where(is_free)
        .values(holder=holder, token=leases.c.token + 1, acquired_at=now, expires_at=now + length)
        .returning(*columns_of(Lease, leases))
    )
    return next(iter(tx.rows(Lease, statement)), None)


def renew_lease(tx: Transaction, lease: Lease, length: timedelta) -> Lease:
    """Make a lease that is still held last longer from now on."""
    confirm_lease(tx, lease)
    # The lock may have been waited for until the lease ran out, so the time and the holder are asked for again.
    statement = (update(leases).where(_is_held(tx, lease)).values(expires_at=tx.time() + length)).returning(
        *columns_of(Lease, leases)
    )
    renewed = tx.rows(Lease, statement)
    if not renewed:
        raise LeaseLost(lease.name, lease.holder)
    return renewed[0]


def confirm_lease(tx: Transaction, lease: Lease) -> None:
    """Make sure that the lease is held, and stays so until the transaction ends; else refuse to go on."""
    query = select(leases.c.token).where(_is_held(tx, lease))
    if not tx.values(tx.locking(query, leases)):
        raise LeaseLost(lease.name, lease.holder)


def release_lease(tx: Transaction, lease: Lease) -> bool:
    """Let a lease go before it runs out; says whether it was still held."""
    return bool(tx.changed(update(leases).where(_is_held(tx, lease)).values(expires_at=tx.now())))


def held_leases(tx: Transaction) -> list[Lease]:
    """Return the leases that somebody holds."""
    query = select_records(Lease, leases).where(leases.c.expires_at > tx.now())
    return tx.rows(Lease, query.order_by(leases.c.name))


def _is_held(tx: Transaction, lease: Lease) -> ColumnElement[bool]:
    return and_(leases.c.name == lease.name, leases.c.token == lease.token, leases.c.expires_at > tx.now())


def _make_sure_it_exists(tx: Transaction, name: str) -> None:
    kinds = {column: leases.c[column].type for column in ("name", "holder", "token", "acquired_at", "expires_at")}
    given = tx.table_of(kinds, [(name, "", 0, _LONG_AGO, _LONG_AGO)])
    tx.execute(tx.insert_missing(leases, {column: given.c[column] for column in kinds}, given, ["name"]))
