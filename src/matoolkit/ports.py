"""All that services may do to the outside world.

The bus delivers at least once: a message may come again, in another process, at any time. A handler completes messages
in the transaction of the changes that they cause. If another process has one of them, the transaction is rolled back.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import Any, Protocol

from matoolkit.domain.messages import Message
from matoolkit.records import record


class Transaction(Protocol):
    """A change of the state, all or nothing. Services pass it on, and never look inside.

    A bus in the state's database writes with it, once it has seen that the transaction is one of its own store. Any
    other bus waits for the commit.
    """

    @property
    def on_commit(self) -> list[Callable[[], object]]:
        """What is done once the transaction has committed, and not at all if it does not."""


@record
class Outgoing:
    """A message to publish, under an id that is derived from facts (rule M2).

    With `not_before` it is delivered then or later. `traceparent` names the span that causes it, if that is not the one
    in which it is published.
    """

    message_id: str
    message: Message
    not_before: datetime | None = None
    traceparent: str | None = None


@record
class Subscription:
    """A queue of a topic: all of its messages, or those that have a certain value of a property."""

    topic: str
    name: str
    filter_property: str | None = None
    filter_value: str | None = None


@record
class Received:
    """A message that this process has locked; `handle` and `lock_token` mean something to its bus only.

    `traceparent` names the span that sent it; it is read only while this process records spans.
    """

    subscription: Subscription
    lock_token: str
    handle: Any
    message_id: str
    message_type: str
    body: str
    delivery_count: int
    traceparent: str | None = None


@record
class Delivery:
    """A message, read, and how it came."""

    received: Received
    message: Message


@record
class Piece:
    """Some rows of a query's result, and its columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


class Source(Protocol):
    """A database that members come from (rule R4)."""

    def pieces(self, query: str) -> Iterator[Piece]:
        """Run a query and return its result in pieces, at least one, so that no result is too large."""


class Publisher(Protocol):
    """Publishes messages with the state that causes them (rule M1)."""

    def publish(self, tx: Transaction, messages: Sequence[Outgoing]) -> None:
        """Publish messages if and when the transaction commits."""

    def withdraw(self, tx: Transaction, job_ids: Collection[str]) -> list[str]:
        """Take back jobs that have not reached a worker, if and when the transaction commits; return which."""

    def unreached(self, worker_ids: Collection[str]) -> Collection[str]:
        """Return the workers for which no job would wait; a worker of which that cannot be known now is not among them.

        Asked for every pile of jobs, so answers are remembered for a while. A bus that has no subscription for a worker
        would drop its jobs without a word.
        """


class NoLongerOurs(Exception):
    """Another process has some of the messages; `renew` returns those that are still ours."""


class Deliverer(Protocol):
    """Hands messages of a subscription to a process, and is told what became of each."""

    def receive(self, subscription: Subscription, most: int) -> list[Received]:
        """Lock messages that are due, oldest first, and return them; an empty list if none are.

        A bus may return fewer than it has; then the next call returns others.
        """

    def wait(self, subscription: Subscription, seconds: float) -> None:
        """Wait until a message may be due, but not longer than that.

        Where waiting is receiving, a message that comes meanwhile is locked and kept for the next `receive`.
        """

    def settles_with(self, tx: Transaction) -> bool:
        """Say whether messages can be settled in a transaction of the state, or only after it."""

    def complete(self, tx: Transaction, messages: Sequence[Received]) -> None:
        """Settle messages if and when the transaction commits.

        A bus that settles with the transaction is called first: if the lock of a message has run out and another
        process has it, `NoLongerOurs` is raised, and the transaction must not be committed. Any other bus is called
        last: it settles after the commit, and after what the transaction publishes has left. It cannot know whose a
        message is; therefore handlers have guards.
        """

    def renew(self, messages: Sequence[Received]) -> list[Received]:
        """Keep messages locked for another lock duration, and return those that are still ours."""

    def abandon(self, messages: Sequence[Received]) -> None:
        """Give messages back, to be delivered again; the delivery counts."""

    def dead_letter(self, message: Received, reason: str, description: str) -> None:
        """Put a message aside for a person to look at."""


class Bus(Deliverer, Protocol):
    """Carries messages between processes (rule M8)."""

    def start(self) -> None:
        """Be ready to wait for messages."""

    def stop(self) -> None:
        """Give back what was received and is not settled, where others would wait long for it, and let go of links."""

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Publish messages at once, with no state of ours."""

    def complete_now(self, messages: Sequence[Received]) -> int:
        """Settle at once the messages that are still ours, and return how many they were."""

    def answer(self, answers: Sequence[Outgoing], messages: Sequence[Received]) -> None:
        """Publish answers, then settle the messages they answer, in this order (rule W1).

        Where possible both are one transaction. Otherwise a crash may come in between: then an answered message comes
        again, and so does its answer, under the same id. A message that another process has is not settled, but its
        answer is still published.
        """

    def sweep(self) -> None:
        """Make dead letters of messages that expired or were delivered too often; call it from time to time."""
