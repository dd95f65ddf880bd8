"""A bus without shared transactions: a crash can come between its two calls."""

from collections.abc import Sequence

from matoolkit.bus.boundaries import ANSWERED
from matoolkit.bus.sql import SqlBus
from matoolkit.ports import Outgoing, Received


class BusApart(SqlBus):
    """A bus that publishes an answer in one call and settles what it answers in the next, as Service Bus does."""

    def answer(self, answers: Sequence[Outgoing], messages: Sequence[Received]) -> None:
        """Publish answers, then settle the messages they answer."""
        self.send(answers)
        ANSWERED.reached()
        self.complete_now(messages)
