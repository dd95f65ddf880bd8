"""The bus in the database's own tables (rule M8).

When the state is in the same database, publishing is an insert in the transaction of the state, and so is being done
with a message: nothing can come between the two. All times are the database's, so the processes' clocks do not matter.
"""

import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial

import orjson

from matoolkit.bus import topology
from matoolkit.bus.doorbell import Doorbell
from matoolkit.bus.envelope import Envelope, sealed
from matoolkit.clock import Clock
from matoolkit.crashpoints import crash_point
from matoolkit.ports import Outgoing, Received, Subscription
from matoolkit.store import Store, queue
from matoolkit.store.listening import Listener
from matoolkit.store.transaction import Transaction

RECEIVED = crash_point("bus.received")
SETTLED = crash_point("bus.settled")

# Another process's messages are found by looking, often where the database cannot announce them.
_POLL_SECONDS = 0.05
_POLL_SECONDS_WHEN_TOLD = 0.5
_SWEPT_AT_ONCE = 1000


class SqlBus:
    """A bus in a store. It publishes with the state if the state is in the same store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._doorbell = Doorbell()
        self._listener = Listener(store, self._doorbell.ring)

    def start(self) -> None:
        """Listen for messages of other processes, where the database can tell."""
        self._listener.start()

    def stop(self) -> None:
        """Stop listening."""
        self._listener.stop()

    def publish(self, tx: Transaction, messages: Sequence[Outgoing]) -> None:
        """Publish messages if and when the transaction commits."""
        self._enqueue(tx, sealed(messages))

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Publish messages at once, with no state of ours."""
        self.deliver(sealed(messages))

    def deliver(self, envelopes: Sequence[Envelope]) -> None:
        """Publish envelopes in their order, all of them or none."""
        with self._store.transaction() as tx:
            self._enqueue(tx, envelopes)

    def receive(self, subscription: Subscription, most: int) -> list[Received]:
        """Lock messages that are due, oldest first, and return them; an empty list if none are."""
        token = str(uuid.uuid4())
        with self._store.transaction() as tx:
            at = tx.time()
            rows = queue.lock_due(
                tx,
                subscription.topic,
                subscription.name,
                token,
                at,
                until=at + topology.LOCK_DURATION,
                deliveries=topology.MAX_DELIVERIES,
                most=most,
            )
        RECEIVED.reached()
        return [_received(subscription, row, token) for row in rows]

    def wait(self, subscription: Subscription, seconds: float) -> None:
        """Wait until a message may be due, but not longer than that."""
        deadline = self._clock.monotonic() + seconds
        pause = _POLL_SECONDS_WHEN_TOLD if self._store.dialect.can_listen else _POLL_SECONDS
        while True:
            seen = self._doorbell.count(subscription.topic)
            left = deadline - self._clock.monotonic()
            if left <= 0 or self._has_due(subscription):
                return
            self._doorbell.wait(subscription.topic, seen, min(pause, left))

    def complete(self, tx: Transaction, messages: Sequence[Received]) -> list[Received]:
        """Be done with messages if and when the transaction commits, and return those that are still ours."""
        return _each_lock(messages, lambda token, ids: queue.remove_locked(tx, token, ids))

    def complete_now(self, messages: Sequence[Received]) -> list[Received]:
        """Be done with messages at once, and return those that were still ours."""
        with self._store.transaction() as tx:
            done = self.complete(tx, messages)
        SETTLED.reached()
        return done

    def renew(self, messages: Sequence[Received]) -> list[Received]:
        """Keep messages locked for another lock duration, and return those that are still ours."""
        with self._store.transaction() as tx:
            until = tx.time() + topology.LOCK_DURATION
            return _each_lock(messages, lambda token, ids: queue.extend_locks(tx, token, ids, until))

    def abandon(self, messages: Sequence[Received]) -> None:
        """Give messages back, to be delivered again; the delivery counts."""
        with self._store.transaction() as tx:
            at = tx.time()
            _each_lock(messages, lambda token, ids: queue.unlock(tx, token, ids, at))
        for topic in {message.subscription.topic for message in messages}:
            self._doorbell.ring(topic)

    def dead_letter(self, message: Received, reason: str, description: str) -> None:
        """Put a message aside for a person to look at."""
        with self._store.transaction() as tx:
            queue.bury_locked(tx, message.lock_token, [message.handle], tx.time(), reason, description)
        SETTLED.reached()

    def sweep(self) -> None:
        """Put aside what nobody took in time or what was delivered too often, and forget old ids."""
        with self._store.transaction() as tx:
            at = tx.time()
            queue.bury_expired(tx, at, _SWEPT_AT_ONCE)
            queue.bury_undeliverable(tx, at, topology.MAX_DELIVERIES, _SWEPT_AT_ONCE)
            queue.forget_ids(tx, at - topology.DUPLICATE_WINDOW)

    def _enqueue(self, tx: Transaction, envelopes: Sequence[Envelope]) -> None:
        if not envelopes:
            return
        at = tx.time()
        queue.enqueue(
            tx,
            [_queued(envelope, at) for envelope in envelopes],
            at,
            forget_before=at - topology.DUPLICATE_WINDOW,
        )
        for topic in {envelope.topic for envelope in envelopes}:
            if (notification := tx.dialect.notification(topic)) is not None:
                tx.execute(notification)
            tx.on_commit.append(partial(self._doorbell.ring, topic))

    def _has_due(self, subscription: Subscription) -> bool:
        with self._store.reading() as tx:
            return queue.has_due(tx, subscription.topic, subscription.name, tx.time(), topology.MAX_DELIVERIES)


def _queued(envelope: Envelope, at: datetime) -> queue.NewQueued:
    visible_at = max(at, envelope.not_before) if envelope.not_before else at
    return queue.NewQueued(
        envelope.topic,
        topology.subscription_for(envelope.topic, envelope.properties).name,
        envelope.message_id,
        envelope.message_type,
        envelope.body,
        orjson.dumps(envelope.properties).decode(),
        visible_at,
        visible_at + topology.TIME_TO_LIVE,
    )


def _received(subscription: Subscription, row: queue.QueuedRow, token: str) -> Received:
    return Received(
        subscription, row.message_id, row.message_type, row.body, row.delivery_count, row.enqueued_at, row.id, token
    )


def _each_lock(messages: Iterable[Received], settle: Callable[[str, Sequence[int]], set[int]]) -> list[Received]:
    """Settle messages, all that were received together in one statement, and return those that were still ours."""
    by_token: dict[str, list[Received]] = {}
    for message in messages:
        by_token.setdefault(message.lock_token, []).append(message)
    ours: list[Received] = []
    for token, locked in by_token.items():
        settled = settle(token, [message.handle for message in locked])
        ours += [message for message in locked if message.handle in settled]
    return ours
