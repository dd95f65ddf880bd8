"""Piles that a host has received and settles itself, all or nothing (rule M6).

A function app cannot settle one message of a pile: if its call returns, the host completes all of them, and if it
raises, the host gives all of them back. So a call never raises because of a message. One that fails is tried again
within the call, and then kept as a dead letter in the state's database. Only trouble of the database or the bus raises;
then the whole pile comes again, and guards make the second time harmless.
"""

import logging
from collections import Counter
from collections.abc import Sequence

from matoolkit import ports
from matoolkit.bus.consumer import Consumer, Handler, is_trouble
from matoolkit.bus.draining import Letter, dead_letter, keep
from matoolkit.bus.topology import LOCK_DURATION
from matoolkit.clock import Clock, SystemClock
from matoolkit.errors import MatoolkitError
from matoolkit.outages import Outage
from matoolkit.ports import Received, Subscription
from matoolkit.store import Store

# A message is tried so often alone before it is put aside.
MOST_TRIES = 3
# How long a call waits for a database that is away. To give a pile back counts as a delivery, and done at once it would
# use up all of them in seconds. The host renews no locks of a pile, so the wait is shorter than they last, and leaves
# some time to handle it.
PATIENCE_SECONDS = LOCK_DURATION.total_seconds() - 20

log = logging.getLogger(__name__)


class HandedPiles:
    """Handles the piles of one subscription; the host calls it for one after the other."""

    def __init__(self, store: Store, subscription: Subscription, handler: Handler, clock: Clock | None = None) -> None:
        self._store = store
        self._subscription = subscription
        self._handler = handler
        self._clock = clock or SystemClock()
        self._failed_since: set[str] = set()
        self._trouble = Outage(f"handling messages of {subscription.name}", log, self._clock)

    def handle(self, letters: Sequence[Letter]) -> None:
        """Handle a pile, each message of it, whatever becomes of the others; raise only in trouble that lasts."""
        pile = _Pile(self._store, letters)
        consumer = Consumer(
            self._store,
            pile,
            self._subscription,
            self._handler,
            is_last_try=pile.is_last_try,
            failed_since=self._failed_since,
            of_one_pile=True,
        )
        ends_at = self._clock.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                if not consumer.turn():
                    break
            except MatoolkitError as error:
                if not is_trouble(error):
                    raise
                pause = self._trouble.failed(error)
                if self._clock.monotonic() + pause > ends_at:
                    raise
                self._clock.sleep(pause)
        self._trouble.worked()


class _Pile:
    """One pile as a consumer sees it. The handle of a message is its place in the pile."""

    def __init__(self, store: Store, letters: Sequence[Letter]) -> None:
        self._store = store
        self._letters = {letter.received.handle: letter for letter in letters}
        self._waiting = [letter.received for letter in letters]
        self._failures: Counter[int] = Counter()

    def is_last_try(self, received: Received) -> bool:
        """Tell whether a message that fails once more is put aside."""
        return self._failures[received.handle] + 1 >= MOST_TRIES

    def receive(self, _subscription: Subscription, most: int) -> list[Received]:
        """Return what was handed over and what is to be tried again."""
        taken, self._waiting = self._waiting[:most], self._waiting[most:]
        return taken

    def wait(self, _subscription: Subscription, _seconds: float) -> None:
        """Do nothing: no other message comes."""

    def settles_with(self, tx: ports.Transaction) -> bool:  # noqa: ARG002
        """Say that no transaction of the state can settle messages."""
        return False

    def complete(self, tx: ports.Transaction, messages: Sequence[Received]) -> None:
        """Do nothing: the host completes the messages when the call returns."""

    def renew(self, messages: Sequence[Received]) -> list[Received]:
        """Return the messages: only the host can renew their locks."""
        return list(messages)

    def abandon(self, messages: Sequence[Received]) -> None:
        """Let messages be tried again."""
        self._failures.update(message.handle for message in messages)
        self._waiting += messages

    def dead_letter(self, message: Received, reason: str, description: str) -> None:
        """Keep a message in the state's database, for a person to look at."""
        keep(self._store, [dead_letter(self._letters[message.handle], reason, description)])
