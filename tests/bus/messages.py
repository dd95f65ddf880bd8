"""Messages for tests, and ways to look at what became of them."""

from datetime import datetime

from matoolkit.bus.servicebus import ServiceBus
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR
from matoolkit.domain.messages import MemberAdded, WorkerJob, correlation_of
from matoolkit.ids import Kind
from matoolkit.ports import Bus, Outgoing, Received
from matoolkit.store import Store
from matoolkit.store.deadletters import DeadLetterRow, dead_letters_page


def added(number: int, not_before: datetime | None = None) -> Outgoing:
    return Outgoing(f"member-added-{number}-0", MemberAdded(1, f"user{number}", number), not_before)


def job(worker: str, number: int = 1) -> Outgoing:
    name = f"step-{number}-attempt-1"
    return Outgoing(name, WorkerJob(name, 1, worker, "Do-It", {}, correlation_of(number, Kind.STEP, "r", 1)))


def receive(bus: Bus, most: int = 100) -> list[Received]:
    return bus.receive(EVENTS_OF_ORCHESTRATOR, most)


def ids(messages: list[Received]) -> list[str]:
    return [message.message_id for message in messages]


def put_aside(bus: Bus, store: Store) -> list[tuple[str, str, str, str, str | None, str]]:
    """Return topic, subscription, id, reason, description and body of dead letters, wherever a bus keeps them."""
    if isinstance(bus, ServiceBus):
        letters = bus.letters(EVENTS_OF_ORCHESTRATOR, 100, dead=True)
        dead = [(one.received, one.reason, one.description) for one in letters]
        return [
            (got.subscription.topic, got.subscription.name, got.message_id, reason or "", description, got.body)
            for got, reason, description in dead
        ]
    return [
        (letter.topic, letter.subscription, letter.message_id, letter.reason, letter.description, letter.body)
        for letter in dead_letters(store)
    ]


def dead_letters(store: Store) -> list[DeadLetterRow]:
    with store.reading() as tx:
        return dead_letters_page(tx)
