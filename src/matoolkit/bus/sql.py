"""The bus in the database's own tables (rule M8).

When the state is in the same database, publishing and settling happen in the transaction of the state: nothing can come
between them. All times are the database's, so the clocks of processes do not matter.
"""

import math
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import lru_cache, partial

import orjson

from matoolkit import ports
from matoolkit.bus import topology
from matoolkit.bus.boundaries import RECEIVED, SETTLED
from matoolkit.bus.doorbell import Doorbell
from matoolkit.bus.envelope import Envelope, sealed
from matoolkit.errors import StoreError
from matoolkit.ports import NoLongerOurs, Outgoing, Received, Subscription
from matoolkit.store import Store, queue
from matoolkit.store.listening import Listener, announce
from matoolkit.store.sql.transaction import Transaction
from matoolkit.telemetry import tracing

# Messages of other processes are found by polling; more often where the database cannot announce them.
_POLL_SECONDS = 0.05
_POLL_SECONDS_WHEN_TOLD = 0.5
_SWEPT_AT_ONCE = 1000


class SqlBus:
    """A bus in a store. It publishes and settles in the transaction of the state, if the state is in the same store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._doorbell = Doorbell()
        self._heard: dict[str, int] = {}
        # Under these tokens messages may be locked that nobody has: the commit may have worked although it failed. If
        # such messages counted as delivered each time, a night of failures would make dead letters of them (rule M6).
        self._unsure: defaultdict[Subscription, list[str]] = defaultdict(list)
        self._listener = Listener(store, self._doorbell.ring)

    def start(self) -> None:
        """Listen for messages of other processes, where the database can tell."""
        self._listener.start()

    def stop(self) -> None:
        """Stop listening."""
        self._listener.stop()

    def publish(self, tx: ports.Transaction, messages: Sequence[Outgoing]) -> None:
        """Publish messages if and when the transaction commits; it must be one of the bus's own store."""
        self._enqueue(self._own(tx), sealed(messages))

    def withdraw(self, tx: ports.Transaction, job_ids: Collection[str]) -> list[str]:
        """Take back jobs that no worker has ever received, if and when the transaction commits; say which."""
        return queue.remove_untouched(self._own(tx), topology.WORKER_JOBS, job_ids)

    def unreached(self, worker_ids: Collection[str]) -> Collection[str]:  # noqa: ARG002
        """Return nobody: a job waits for its worker even if that worker has never run."""
        return ()

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Publish messages at once, with no state of ours."""
        self.deliver(sealed(messages))

    def deliver(self, envelopes: Sequence[Envelope]) -> None:
        """Publish envelopes in their order."""
        with self._store.transaction() as tx:
            self._enqueue(tx, envelopes)

    def receive(self, subscription: Subscription, most: int) -> list[Received]:
        """Lock messages that are due, oldest first, and return them; an empty list if none are."""
        # Counted before looking, so that a ring between this look and the next wait is not missed.
        self._heard[subscription.topic] = self._doorbell.count(subscription.topic)
        unsure = self._unsure[subscription]
        # Each token belongs to one thread at a time, so no two can get the messages of one.
        try:
            token, is_unsure = unsure.pop(), True
        except IndexError:
            token, is_unsure = str(uuid.uuid4()), False
        try:
            received = self._locked(subscription, token, most, is_unsure=is_unsure)
        except StoreError:
            unsure.append(token)
            raise
        RECEIVED.reached()
        return received

    def _locked(self, subscription: Subscription, token: str, most: int, *, is_unsure: bool) -> list[Received]:
        with self._store.transaction() as tx:
            at = tx.lock_time()
            if is_unsure:
                queue.undo_receipt(tx, subscription, token, at)
            until = at + topology.LOCK_DURATION
            return queue.lock_due(tx, subscription, token, at, until=until, most=most, is_traced=tracing.is_on())

    def wait(self, subscription: Subscription, seconds: float) -> None:
        """Wait until a message may be due, but not longer than that."""
        topic = subscription.topic
        pause = _POLL_SECONDS_WHEN_TOLD if self._store.dialect.can_listen else _POLL_SECONDS
        # A message published since the last look has rung the bell already. Wait first, then look: a message that
        # another process is just settling still looks as if it were due.
        seen = self._heard.get(topic, 0)
        for _ in range(math.ceil(seconds / pause)):
            if self._doorbell.wait(topic, seen, min(pause, seconds)) or self._has_due(subscription):
                return

    def settles_with(self, tx: ports.Transaction) -> bool:
        """Say whether messages can be settled in a transaction: if it is one of the bus's own store."""
        return self._store.own(tx) is not None

    def complete(self, tx: ports.Transaction, messages: Sequence[Received]) -> None:
        """Be done with messages if and when the transaction commits; it must not if some are no longer ours.

        A transaction of another store cannot check that, so messages are settled after its commit, as on any bus
        outside the state's database.
        """
        own = self._store.own(tx)
        if own is None:
            tx.on_commit.append(partial(self.complete_now, tuple(messages)))
        elif _remove(own, messages) < len(messages):
            raise NoLongerOurs

    def complete_now(self, messages: Sequence[Received]) -> int:
        """Settle at once the messages that are still ours, and return how many they were."""
        with self._store.transaction() as tx:
            done = _remove(tx, messages)
        SETTLED.reached()
        return done

    def answer(self, answers: Sequence[Outgoing], messages: Sequence[Received]) -> None:
        """Publish answers and settle the messages they answer, all or nothing."""
        envelopes = sealed(answers)
        with self._store.transaction() as tx:
            # In this order SQLite reuses the pages of the removed rows for the new ones, and writes less (ADR 21).
            _remove(tx, messages)
            self._enqueue(tx, envelopes)
        SETTLED.reached()

    def renew(self, messages: Sequence[Received]) -> list[Received]:
        """Keep messages locked for another lock duration, and return those that are still ours."""
        with self._store.transaction() as tx:
            until = tx.lock_time() + topology.LOCK_DURATION
            renewed: set[int] = set()
            for token, locked in _by_token(messages).items():
                renewed |= queue.extend_locks(tx, token, locked, until)
        return [message for message in messages if message.handle in renewed]

    def abandon(self, messages: Sequence[Received]) -> None:
        """Give messages back, to be delivered again; the delivery counts."""
        with self._store.transaction() as tx:
            at = tx.lock_time()
            for token, locked in _by_token(messages).items():
                queue.unlock(tx, token, locked, at)
        for topic in {message.subscription.topic for message in messages}:
            self._doorbell.ring(topic)

    def take_over(self) -> None:
        """Release all locks at once: for a process that knows that all others are gone.

        If one of them still runs, its messages are handled twice, as after a lock that ran out.
        """
        with self._store.transaction() as tx:
            queue.unlock_all(tx, tx.lock_time())

    def dead_letter(self, message: Received, reason: str, description: str) -> None:
        """Put a message aside for a person to look at."""
        with self._store.transaction() as tx:
            queue.bury_locked(tx, message.lock_token, [message.handle], reason, description)
        SETTLED.reached()

    def sweep(self) -> None:
        """Make dead letters of messages that expired or were delivered too often, and forget old ids."""
        for bury in (_bury_expired, queue.bury_undeliverable):
            while self._swept(bury) == _SWEPT_AT_ONCE:
                pass
        with self._store.transaction() as tx:
            at = tx.lock_time()
            queue.forget_ids(tx, at, published_before=at - topology.DUPLICATE_WINDOW)

    def _own(self, tx: ports.Transaction) -> Transaction:
        own = self._store.own(tx)
        if own is None:
            raise ValueError("the state is in another database: publish through a Relay")
        return own

    def _swept(self, bury: Callable[[Transaction, datetime, int], int]) -> int:
        with self._store.transaction() as tx:
            return bury(tx, tx.lock_time(), _SWEPT_AT_ONCE)

    def _enqueue(self, tx: Transaction, envelopes: Sequence[Envelope]) -> None:
        if not envelopes:
            return
        at = tx.lock_time()
        expires_at = at + topology.TIME_TO_LIVE
        queued = [_queued(tx, envelope, at, expires_at) for envelope in envelopes]
        queue.enqueue(tx, queued, at, forget_before=at - topology.DUPLICATE_WINDOW)
        for topic in {envelope.topic for envelope in envelopes}:
            announce(tx, topic)
            tx.on_commit.append(partial(self._doorbell.ring, topic))

    def _has_due(self, subscription: Subscription) -> bool:
        with self._store.reading() as tx:
            return queue.has_due(tx, subscription.topic, subscription.name, tx.lock_time())


def _bury_expired(tx: Transaction, at: datetime, most: int) -> int:
    return queue.bury_expired(tx, at, most, published_by=at - topology.TIME_TO_LIVE)


def _queued(tx: Transaction, envelope: Envelope, due_at: datetime, expires_at: datetime) -> queue.NewQueued:
    if envelope.not_before and (not_before := tx.real_time(envelope.not_before)) > due_at:
        due_at, expires_at = not_before, not_before + topology.TIME_TO_LIVE
    return queue.NewQueued(
        envelope.topic,
        _subscription_name(envelope.topic, envelope.properties_json),
        envelope.message_id,
        envelope.message_type,
        envelope.body,
        envelope.all_properties_json,
        due_at,
        expires_at,
    )


@lru_cache(maxsize=1024)
def _subscription_name(topic: str, properties_json: str) -> str:
    # There are as many as there are workers.
    return topology.subscription_for(topic, orjson.loads(properties_json)).name


def _remove(tx: Transaction, messages: Iterable[Received]) -> int:
    return sum(queue.remove_locked(tx, token, locked) for token, locked in _by_token(messages).items())


def _by_token(messages: Iterable[Received]) -> dict[str, list[int]]:
    """Group the numbers of messages by the lock under which they were received."""
    by_token: dict[str, list[int]] = {}
    for message in messages:
        by_token.setdefault(message.lock_token, []).append(message.handle)
    return by_token
