"""The loop in which a service handles messages: receive a pile, handle it, be done with it, in one commit (rule M4).

A message that fails is found by trying the pile's messages one by one, and counts its failure alone. Trouble with the
database or the bus is nobody's failure: the pile is kept, the loop pauses, and tries again (rule M6).
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matoolkit.bus import topology
from matoolkit.bus.wire import decode
from matoolkit.crashpoints import crash_point
from matoolkit.domain.messages import Message
from matoolkit.errors import MatoolkitError, UnreadableMessage
from matoolkit.ports import Bus, Received, Subscription
from matoolkit.store import Store
from matoolkit.store.transaction import Transaction

HANDLED = crash_point("consumer.handled")

MOST_AT_ONCE = 500
_IDLE_SECONDS = 1.0
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message, read, and how it came."""

    received: Received
    message: Message


Handler = Callable[[Transaction, Sequence[Delivery]], None]


class Consumer:
    """Handles the messages of a subscription with a function that takes many at once."""

    def __init__(
        self, store: Store, bus: Bus, subscription: Subscription, handler: Handler, most: int = MOST_AT_ONCE
    ) -> None:
        self._store = store
        self._bus = bus
        self._subscription = subscription
        self._handler = handler
        self._most = most
        self._unfinished: list[Delivery] = []

    def run(self, stop: threading.Event) -> None:
        """Handle messages until told to stop; the pile at hand is finished first."""
        pause = _FIRST_PAUSE_SECONDS
        while not stop.is_set():
            try:
                if not self.turn():
                    self._bus.wait(self._subscription, _IDLE_SECONDS)
                pause = _FIRST_PAUSE_SECONDS
            except MatoolkitError as error:
                if not error.transient:
                    raise
                log.warning("receiving from %s pauses: %s", self._subscription.name, error.message)
                stop.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    def turn(self) -> int:
        """Handle one pile and say how many messages it had; a pile that trouble interrupted comes first."""
        if not self._unfinished:
            self._unfinished = self._read(self._bus.receive(self._subscription, self._most))
        count = len(self._unfinished)
        try:
            self._handle(self._unfinished)
        except MatoolkitError as error:
            if error.transient:
                raise
            self._isolate(error)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises, only its message is at fault
            self._isolate(error)
        self._unfinished = []
        return count

    def _handle(self, deliveries: Sequence[Delivery]) -> None:
        if not deliveries:
            return
        with self._store.transaction() as tx:
            # Being done with a message comes first: what another process has by now is left to that process.
            done = {id(message) for message in self._bus.complete(tx, [delivery.received for delivery in deliveries])}
            ours = [delivery for delivery in deliveries if id(delivery.received) in done]
            if ours:
                self._handler(tx, ours)
            HANDLED.reached()

    def _isolate(self, error: Exception) -> None:
        """Try the messages of a failed pile one by one; those that fail alone are given back or put aside."""
        if len(self._unfinished) == 1:
            self._give_up(self._unfinished.pop(), error)
        while self._unfinished:
            try:
                self._handle(self._unfinished[:1])
                self._unfinished = self._unfinished[1:]
            except MatoolkitError as failure:
                if failure.transient:
                    raise
                self._give_up(self._unfinished.pop(0), failure)
            except Exception as failure:  # noqa: BLE001 - as above
                self._give_up(self._unfinished.pop(0), failure)

    def _give_up(self, delivery: Delivery, error: Exception) -> None:
        received = delivery.received
        log.error("message %s failed, delivery %d", received.message_id, received.delivery_count, exc_info=error)
        if received.delivery_count >= topology.MAX_DELIVERIES:
            self._bus.dead_letter(received, "HandlingFailed", f"{type(error).__name__}: {error}")
        else:
            self._bus.abandon([received])

    def _read(self, pile: Sequence[Received]) -> list[Delivery]:
        """Read messages; one that cannot be read now can never be, and is put aside at once."""
        readable: list[Delivery] = []
        for received in pile:
            try:
                message = decode(received.subscription.topic, received.message_type, received.body)
            except UnreadableMessage as error:
                log.error("message %s is put aside: %s", received.message_id, error.message)  # noqa: TRY400
                self._bus.dead_letter(received, "Unreadable", error.message)
            else:
                readable.append(Delivery(received, message))
        return readable
