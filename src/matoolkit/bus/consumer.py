"""The loop in which a service handles messages: receive a pile, handle it and settle it in one commit (rule M4).

If a pile fails, its messages are tried one by one, and only the bad one counts a failure. An outage of the database or
the bus is not a failure of a message: the loop keeps the pile, renews its locks, pauses and tries again (M6). An
unknown error of the database may be either. It counts for a message only if the database proves that it works and the
messages beside it do not all fail in the same way.

The loop knows no service: `hosting/orchestrator.py` gives it `Orchestrator.handle`. Where a host receives and settles
messages, `bus/handed.py` calls `turn` and is what the consumer receives from.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence

from matoolkit.bus.wire import decode
from matoolkit.crashpoints import crash_point
from matoolkit.domain.delivery import MAX_DELIVERIES, SUSPICIOUS_DELIVERIES
from matoolkit.errors import MatoolkitError, RowConflict, StoreDamaged, StoreError
from matoolkit.outages import Outage
from matoolkit.ports import Deliverer, Delivery, NoLongerOurs, Received, Subscription
from matoolkit.store import Store
from matoolkit.store.health import require_healthy
from matoolkit.store.sql.transaction import Transaction
from matoolkit.telemetry import tracing
from matoolkit.telemetry.tracing import Span

HANDLED = crash_point("consumer.handled")

MOST_AT_ONCE = 500
_IDLE_SECONDS = 1.0
# If this many messages fail and none works, the database is in doubt, and the others are not even tried.
_ENOUGH_DOUBTS = 5

log = logging.getLogger(__name__)


Handler = Callable[[Transaction, Sequence[Delivery]], None]


def delivered_too_often(received: Received) -> bool:
    """Tell whether a message that fails once more is put aside."""
    return received.delivery_count >= MAX_DELIVERIES


def is_trouble(error: MatoolkitError) -> bool:
    """Tell whether receiving or settling failed for a while, so that no message is to blame."""
    return error.transient or isinstance(error, StoreError)


class Consumer:
    """Handles the messages of a subscription with a function that takes many at once.

    `is_last_try` tells which message becomes a dead letter if it fails now. `failed_since` are the messages that failed
    with an unknown error of the database since the last one worked; consumers of one subscription can share it. A
    consumer `of_one_pile` gets no other messages: one that it has handled speaks for the database until its end.
    """

    def __init__(
        self,
        store: Store,
        bus: Deliverer,
        subscription: Subscription,
        handler: Handler,
        most: int = MOST_AT_ONCE,
        *,
        is_last_try: Callable[[Received], bool] = delivered_too_often,
        failed_since: set[str] | None = None,
        of_one_pile: bool = False,
    ) -> None:
        self._store = store
        self._bus = bus
        self._subscription = subscription
        self._handler = handler
        self._most = most
        self._is_last_try = is_last_try
        self._pile: list[Received] = []
        # Messages of this turn that failed with an unknown error of the database.
        self._doubtful: dict[str, tuple[Received, StoreError]] = {}
        self._failed_since: set[str] = set() if failed_since is None else failed_since
        self._has_handled = False
        self._is_of_one_pile = of_one_pile
        # The longest pause is well below the lock duration, so that locks are renewed in time.
        self._trouble = Outage(f"handling messages of {subscription.name}", log)

    def run(self, stop: threading.Event) -> None:
        """Handle messages until told to stop; the pile at hand is finished first."""
        while not stop.is_set():
            try:
                if not self.turn():
                    self._bus.wait(self._subscription, _IDLE_SECONDS)
                self._trouble.worked()
            except MatoolkitError as error:
                if not is_trouble(error):
                    raise
                stop.wait(self._trouble.failed(error))

    def turn(self) -> int:
        """Handle one pile and return its size; a pile that was interrupted comes first.

        Messages that another process has taken since are left out. Messages that all fail do not block others: a few
        more are received beside them, and if one of those is handled, the database works.
        """
        if self._pile:
            self._pile = self._bus.renew(self._pile)
        if not self._pile or self._failed_since:
            # New messages come first: a pile that fails must not keep them from being tried.
            self._pile = [*self._bus.receive(self._subscription, self._room()), *self._pile]
        count = len(self._pile)
        self._doubtful, self._has_handled = {}, self._has_handled and self._is_of_one_pile
        try:
            for part in _parts(self._readable()):
                self._try(part)
            self._judge()
        except NoLongerOurs:
            # The transaction is rolled back. The pile is kept, and `renew` drops the lost messages at the next turn.
            log.info("lost locks on %s; retrying the rest", self._subscription.name)
        return count

    def _room(self) -> int:
        """Return how many messages to receive; a few even beside a full pile of failing messages."""
        left = self._most - len(self._pile)
        # `left` is negative beside an overfull pile. With `left + self._most` no pile grows beyond twice its size.
        return max(left, min(_ENOUGH_DOUBTS, left + self._most), 0) if self._pile else self._most

    def _try(self, deliveries: Sequence[Delivery]) -> None:
        """Handle messages; if that fails, try each alone, and count a failure for one that fails alone."""
        try:
            self._handle(deliveries)
        except NoLongerOurs:
            raise
        except Exception as error:
            if getattr(error, "spares_work", False) or isinstance(error, StoreDamaged):
                raise
            if len(deliveries) > 1:
                for delivery in deliveries:
                    self._try([delivery])
                return
            if isinstance(error, StoreError) and not isinstance(error, RowConflict):
                self._doubt(deliveries[0].received, error)
                return
            self._count_failure(deliveries[0].received, "HandlingFailed", error)
        else:
            self._has_handled = True
            self._failed_since.clear()
        self._forget(delivery.received for delivery in deliveries)

    def _doubt(self, received: Received, error: StoreError) -> None:
        self._doubtful[received.message_id] = received, error
        self._failed_since.add(received.message_id)
        if not self._has_handled and len(self._doubtful) >= _ENOUGH_DOUBTS:
            self._judge()

    def _judge(self) -> None:
        """Decide whether unknown errors of the database are its own fault or that of the messages."""
        if not self._doubtful:
            return
        failed = [received for received, _ in self._doubtful.values()]
        fault = next(error for _, error in self._doubtful.values())
        # At the end of the pile, so that untried messages come first next time.
        self._forget(failed)
        self._pile += failed
        require_healthy(self._store)
        if not self._has_handled and len(self._failed_since) > 1:
            raise fault
        for received, error in self._doubtful.values():
            self._count_failure(received, "HandlingFailed", error)
            self._forget([received])

    def _handle(self, deliveries: Sequence[Delivery]) -> None:
        pile = [delivery.received for delivery in deliveries]
        with self._span_of(pile), self._store.transaction() as tx:
            settles_with_state = self._bus.settles_with(tx)
            if settles_with_state:
                # If another process has one of the messages, this raises before anything is changed.
                self._bus.complete(tx, pile)
            self._handler(tx, deliveries)
            if not settles_with_state:
                # After the handler: what it publishes leaves first, because follow-ups of a commit keep their order.
                self._bus.complete(tx, pile)
            HANDLED.reached()

    def _span_of(self, pile: Sequence[Received]) -> Span:
        if not tracing.is_on():
            return tracing.NO_SPAN
        topic = self._subscription.topic
        about = {"messaging.destination.name": topic, "messaging.batch.message_count": len(pile)}
        return tracing.span_of_messages([one.traceparent for one in pile], f"handle {topic}", about)

    def _readable(self) -> list[Delivery]:
        """Read the pile; a message that cannot be read is a dead letter at once: it never will be readable."""
        readable: list[Delivery] = []
        for received in tuple(self._pile):
            try:
                message = decode(received.subscription.topic, received.message_type, received.body)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with it, it stops no other message
                log.error("message %s is put aside: %s", received.message_id, error)  # noqa: TRY400
                self._bus.dead_letter(received, "Unreadable", _described(error))
                self._forget([received])
            else:
                readable.append(Delivery(received, message))
        return readable

    def _count_failure(self, received: Received, reason: str, error: Exception) -> None:
        log.error("message %s failed, delivery %d", received.message_id, received.delivery_count, exc_info=error)
        if self._is_last_try(received):
            self._bus.dead_letter(received, reason, _described(error))
        else:
            self._bus.abandon([received])

    def _forget(self, messages: "Iterator[Received] | Sequence[Received]") -> None:
        gone = {id(message) for message in messages}
        self._pile = [message for message in self._pile if id(message) not in gone]


def _parts(deliveries: Sequence[Delivery]) -> Iterator[Sequence[Delivery]]:
    """Split a pile: a message that was delivered often may kill the process, so it goes alone.

    The order of suspects turns round at every delivery, so that a killer at one end does not shield the other end.
    """
    fresh = [delivery for delivery in deliveries if delivery.received.delivery_count < SUSPICIOUS_DELIVERIES]
    if fresh:
        yield fresh
    suspects = [delivery for delivery in deliveries if delivery.received.delivery_count >= SUSPICIOUS_DELIVERIES]
    if suspects and suspects[0].received.delivery_count % 2:
        suspects.reverse()
    for suspect in suspects:
        yield [suspect]


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
