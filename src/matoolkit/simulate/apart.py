"""A bus without shared transactions: a crash can come between its two calls, and an acknowledgement may be lost."""

from collections.abc import Sequence

from matoolkit.bus.boundaries import ANSWERED
from matoolkit.bus.sql import SqlBus
from matoolkit.ports import Outgoing, Received
from matoolkit.simulate.faults import Fault, Faults
from matoolkit.store import Store


class BusApart(SqlBus):
    """A bus that publishes an answer in one call and settles what it answers in the next, as Service Bus does."""

    def __init__(self, store: Store, faults: Faults | None = None) -> None:
        super().__init__(store)
        self._faults = faults

    def answer(self, answers: Sequence[Outgoing], messages: Sequence[Received]) -> None:
        """Publish answers, then settle the messages they answer, or let them come again."""
        self.send(answers)
        ANSWERED.reached()
        if self._faults is None or not self._faults.strikes(Fault.DONE_TWICE):
            self.complete_now(messages)
