"""The lease by which one scheduler works at a time (rule T10)."""

import logging
import threading
from collections.abc import Callable
from datetime import timedelta

from matoolkit.errors import LeaseLost
from matoolkit.store import Store
from matoolkit.store.leases import Lease, acquire_lease, confirm_lease, release_lease, renew_lease
from matoolkit.store.sql.transaction import Transaction

LEASE = "scheduler"

# Called first in every transaction: it locks the lease until the commit, so no other scheduler can take over (T10).
Confirm = Callable[[Transaction], object]

log = logging.getLogger(__name__)


class Stopping(Exception):
    """The process was told to stop: the transaction at hand is finished, no other is begun."""


class SchedulerLease:
    """The right to work, as long as the database says that we have it and nobody told us to stop."""

    def __init__(self, store: Store, holder: str, length: timedelta, stop: threading.Event | None = None) -> None:
        self._store = store
        self._holder = holder
        self._length = length
        self._lease: Lease | None = None
        # Ticks and sweeps have threads of their own.
        self._changing = threading.Lock()
        self._stop = stop or threading.Event()

    def hold(self) -> bool:
        """Take or renew the lease, and return whether we have it."""
        with self._changing:
            held = self._lease
            self._lease = self._renewed(held) if held else self._take()
            if held and not self._lease:
                log.warning("another scheduler has taken over")
            elif self._lease and not held:
                log.info("this scheduler works from now on")
            return self._lease is not None

    def confirm(self, tx: Transaction) -> None:
        """Refuse to go on in a transaction if we do not have the lease, or may lose it before the commit."""
        if self._stop.is_set():
            raise Stopping
        if self._lease is None:
            raise LeaseLost(LEASE, self._holder)
        confirm_lease(tx, self._lease)

    def let_go(self) -> None:
        """Let another scheduler work at once."""
        with self._changing:
            if self._lease is None:
                return
            with self._store.transaction() as tx:
                release_lease(tx, self._lease)
            self._lease = None

    def _take(self) -> Lease | None:
        with self._store.transaction() as tx:
            return acquire_lease(tx, LEASE, self._holder, self._length)

    def _renewed(self, lease: Lease) -> Lease | None:
        try:
            with self._store.transaction() as tx:
                return renew_lease(tx, lease, self._length)
        except LeaseLost:
            # It ran out, but another scheduler need not have it.
            return self._take()
