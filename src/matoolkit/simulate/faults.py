"""What can go wrong, how often it does, and how often it did."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from enum import StrEnum
from random import Random

from matoolkit.bus.sql import SqlBus
from matoolkit.ports import Received, Subscription, Transaction
from matoolkit.store import Store


class Fault(StrEnum):
    """Kinds of faults."""

    CRASH_BEFORE_COMMIT = "crash before commit"
    CRASH_AFTER_COMMIT = "crash after commit"
    CRASH_WHILE_SENDING = "crash while sending"
    DUPLICATE = "duplicate delivery"
    DELAYED = "delayed message"
    REORDERED = "reordered messages"
    LOST_RESULT = "lost result"
    WORKER_DIED = "worker died"
    DEAD_JOB = "job put aside by the bus"
    THROTTLED = "throttled answer"
    FAILING = "failing answer"
    MISSING_OUTPUT = "answer without its output"
    ANSWERED_TWICE = "answered twice"
    DONE_TWICE = "answered job that comes again"
    LOCK_EXPIRED = "two processes with the same message"
    INTERLEAVED = "another process between two transactions"
    CLOCK_JUMP = "clock jump"
    SOURCE_DOWN = "source down"
    BROKEN_VIEW = "broken view"
    DUPLICATE_ROWS = "duplicates in the source"
    LEASE_LOST = "lease lost to a second scheduler"


_RATES = {
    Fault.CRASH_BEFORE_COMMIT: 0.03,
    Fault.CRASH_AFTER_COMMIT: 0.03,
    # Only where the bus is in its own database, and only in moves that send something.
    Fault.CRASH_WHILE_SENDING: 0.12,
    Fault.DUPLICATE: 0.05,
    Fault.DELAYED: 0.3,
    Fault.REORDERED: 0.1,
    Fault.LOST_RESULT: 0.03,
    Fault.WORKER_DIED: 0.04,
    Fault.DEAD_JOB: 0.02,
    Fault.THROTTLED: 0.06,
    Fault.FAILING: 0.1,
    Fault.MISSING_OUTPUT: 0.04,
    Fault.ANSWERED_TWICE: 0.06,
    Fault.LOCK_EXPIRED: 0.04,
    Fault.INTERLEAVED: 0.05,
    Fault.CLOCK_JUMP: 0.25,
    Fault.SOURCE_DOWN: 0.2,
    Fault.BROKEN_VIEW: 0.15,
    Fault.DUPLICATE_ROWS: 0.2,
    Fault.LEASE_LOST: 0.06,
}
# Where the bus is apart by plan: what Service Bus may do at any time happens all the time.
_RATES_APART = _RATES | {
    Fault.CRASH_AFTER_COMMIT: 0.12,
    Fault.DUPLICATE: 0.4,
    Fault.DONE_TWICE: 0.2,
}


class Faults:
    """Decides by the seed whether a fault strikes, and counts it."""

    def __init__(self, rng: Random, disabled: Collection[Fault] = (), *, is_apart: bool = False) -> None:
        self._rng = rng
        self._disabled = frozenset(disabled)
        self._rates = _RATES_APART if is_apart else _RATES
        self.are_over = False
        self.counts: Counter[Fault] = Counter()

    def strikes(self, kind: Fault) -> bool:
        """Tell whether a fault strikes this time; the caller then makes it happen."""
        if self.are_over or kind in self._disabled or kind not in self._rates:
            return False
        if self._rng.random() >= self._rates[kind]:
            return False
        self.counts[kind] += 1
        return True

    def missed(self, kind: Fault) -> None:
        """Take back the count of a fault that could not be made to happen."""
        self.counts[kind] -= 1


class FaultyBus(SqlBus):
    """The bus as one process sees it on a bad day."""

    def __init__(self, store: Store, faults: Faults, rng: Random, meanwhile: Callable[[], None]) -> None:
        super().__init__(store)
        self._faults = faults
        self._rng = rng
        self._meanwhile = meanwhile

    def receive(self, subscription: Subscription, most: int) -> list[Received]:
        """Lock messages; they may come in another order, or be handled so late that others have them too."""
        messages = super().receive(subscription, most)
        if len(messages) > 1 and self._faults.strikes(Fault.REORDERED):
            self._rng.shuffle(messages)
        if messages and self._faults.strikes(Fault.LOCK_EXPIRED):
            self._meanwhile()
        return messages

    def complete(self, tx: Transaction, messages: Sequence[Received]) -> None:
        """Settle messages, or leave them to be delivered again once their locks have run out."""
        if not (messages and self._faults.strikes(Fault.DUPLICATE)):
            super().complete(tx, messages)
