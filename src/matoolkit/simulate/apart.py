"""A bus without shared transactions: a crash can come between its two calls, and an acknowledgement may be lost."""

from collections.abc import Sequence

from matoolkit.bus.boundaries import ANSWERED
from matoolkit.bus.draining import Letter
from matoolkit.bus.sql import SqlBus
from matoolkit.errors import MatoolkitError
from matoolkit.ports import Outgoing, Received, Subscription
from matoolkit.simulate.faults import Fault, Faults
from matoolkit.store import Store
from matoolkit.store.deadletters import DeadLetterRow, dead_letters_page, discard_dead_letters


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


class LettersApart:
    """The dead letters of a bus that is apart: they wait beside their subscription until they are settled."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def letters(self, subscription: Subscription, most: int, *, dead: bool) -> list[Letter]:
        """Return dead letters of a subscription; no job is unclaimed, because every worker has a subscription."""
        if not dead:
            return []
        with self._store.reading() as tx:
            found = dead_letters_page(tx, limit=most)
        place = subscription.topic, subscription.name
        return [_letter(subscription, row) for row in found if (row.topic, row.subscription) == place]

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Publish messages at once."""
        SqlBus(self._store).send(messages)

    def complete_now(self, messages: Sequence[Received]) -> int:
        """Settle dead letters."""
        with self._store.transaction() as tx:
            return len(discard_dead_letters(tx, [message.handle for message in messages], "the drain", tx.time()))

    def probe(self, subscriptions: Sequence[Subscription]) -> list[MatoolkitError | None]:
        """Say that nothing is wrong: every subscription exists."""
        return [None for _ in subscriptions]


def _letter(subscription: Subscription, row: DeadLetterRow) -> Letter:
    received = Received(subscription, "", row.id, row.message_id, row.message_type, row.body, row.delivery_count)
    return Letter(received, row.properties_json, row.enqueued_at, row.reason, row.description)
