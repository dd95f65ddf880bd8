"""Waking up when another process commits, where the database can tell (PostgreSQL's LISTEN and NOTIFY).

A help, not the guarantee: what is missed because the connection broke is found by the next poll.
"""

import logging
import threading
from collections.abc import Callable
from typing import Any

from sqlalchemy import Executable

from matoolkit.errors import MatoolkitError
from matoolkit.outages import Outage
from matoolkit.store.sql.connections import own_driver_connection
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.transaction import Store, Transaction

_HEARTBEAT_SECONDS = 1.0

log = logging.getLogger(__name__)


def announce(tx: Transaction, word: str) -> None:
    """Tell other processes a word when the transaction commits, if the database can."""
    if tx.dialect.can_listen:
        tx.execute(_announced(tx, word))


@prepared
def _announced(draft: Drafting, word: Any) -> Executable:
    return draft.dialect.notification(word)


class Listener:
    """A thread that hears what other processes announce, until it is stopped."""

    def __init__(self, store: Store, heard: Callable[[str], None]) -> None:
        self._store = store
        self._heard = heard
        self._stop = threading.Event()
        self._trouble = Outage("listening for other processes", log)
        self._thread = threading.Thread(target=self._run, name="listener", daemon=True)

    def start(self) -> None:
        """Begin to listen, if the database can tell anything."""
        if self._store.dialect.can_listen:
            self._thread.start()

    def stop(self) -> None:
        """Stop listening."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._listen()
            except Exception as error:  # noqa: BLE001 - a driver may raise anything; polling goes on meanwhile
                self._stop.wait(self._trouble.failed(self._cause(error)))

    def _cause(self, error: Exception) -> Exception:
        """Return the database's outage if that is why: the store has told of it, here or elsewhere."""
        try:
            with self._store.reading() as tx:
                tx.time()
        except MatoolkitError as outage:
            return outage
        return error

    def _listen(self) -> None:
        dialect = self._store.dialect
        with own_driver_connection(self._store) as connection:
            while not self._stop.is_set():
                self._trouble.worked()
                for word in dialect.listen(connection, _HEARTBEAT_SECONDS):
                    self._heard(word)
