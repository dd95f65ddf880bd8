"""Publishers, relays and consumers as real processes that are killed, again and again, at any crash point.

    python -m tests.bus.bus_under_fire ROUNDS SEED STATE_URL [BUS_URL]

In the first round nobody dies. It loads and compiles what the processes of the others then find. Each of those rounds
forks a few processes that share a clock; the next round's clock is two minutes ahead, so that the locks and claims of
the dead have run out. In the end one process that is not killed finishes the work, and the tally is printed:
what was published, what was applied, what was put aside, and how many processes died at which point.

With one database the bus is in it, and the handler is as naive as can be: whatever is handled twice shows. With two,
messages go through the outbox, and the handler is guarded, as it must be there.
"""

import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from matoolkit.bus.consumer import Consumer
from matoolkit.bus.relay import Relay
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR
from matoolkit.clock import VirtualClock
from matoolkit.crashpoints import arm, kill_process
from matoolkit.domain.messages import MemberAdded
from matoolkit.ports import Delivery, Outgoing, Publisher
from matoolkit.store import Store
from matoolkit.store.audit import NewAuditEntry, audit_page, record_changes
from matoolkit.store.deadletters import dead_letters_page
from matoolkit.store.outbox import waiting_count
from matoolkit.store.queue import queue_lengths
from matoolkit.store.sql.transaction import Transaction
from tests.databases import Database

START = datetime(2026, 3, 3, 12, tzinfo=UTC)
POINTS = ["store.before_commit", "store.after_commit", "bus.received", "consumer.handled"]
POINTS_APART = ["store.before_commit", "store.after_commit", "relay.before_send", "relay.after_send", "bus.received"]
POINTS_APART += ["bus.settled"]
MESSAGES_A_ROUND = 12
PILE = 5


class World:
    """The databases of one round, as one process sees them."""

    def __init__(self, urls: Sequence[str], round_number: int, ahead: timedelta = timedelta()) -> None:
        clock = VirtualClock(START + timedelta(minutes=2) * round_number + ahead)
        stores = [Database(url, url.partition(":")[0].partition("+")[0]).open(clock) for url in urls]
        self.state, self.far = stores[0], stores[-1]
        self.bus = SqlBus(self.far)
        self.publisher: Publisher = self.bus if self.far is self.state else Relay(self.state, self.bus)

    def publish(self, first: int) -> None:
        """Publish messages, each pile with the state that says so."""
        for start in range(first, first + MESSAGES_A_ROUND, PILE):
            numbers = range(start, min(start + PILE, first + MESSAGES_A_ROUND))
            with self.state.transaction() as tx:
                _note(tx, "published", map(str, numbers))
                self.publisher.publish(
                    tx,
                    [Outgoing(f"member-added-{number}-0", MemberAdded(1, str(number), number)) for number in numbers],
                )

    def consume(self) -> None:
        """Handle what is there."""
        handler = _apply if self.far is self.state else _apply_guarded
        consumer = Consumer(self.state, self.bus, EVENTS_OF_ORCHESTRATOR, handler, most=PILE)
        while consumer.turn():
            pass

    def close(self) -> None:
        """Let go of all connections."""
        self.state.close()
        self.far.close()

    def sweep(self) -> None:
        """Send what dead publishers left behind."""
        if isinstance(self.publisher, Relay):
            while self.publisher.sweep():
                pass
        self.bus.sweep()


def _apply(tx: Transaction, deliveries: Sequence[Delivery]) -> None:
    _note(tx, "applied", [delivery.received.message_id.split("-")[2] for delivery in deliveries])


def _apply_guarded(tx: Transaction, deliveries: Sequence[Delivery]) -> None:
    applied = set(_noted(tx, "applied"))
    keys = [delivery.received.message_id.split("-")[2] for delivery in deliveries]
    _note(tx, "applied", [key for key in keys if key not in applied])


def _note(tx: Transaction, action: str, subjects: "Sequence[str] | map[str]") -> None:
    record_changes(tx, [NewAuditEntry("process", action, "message", subject) for subject in subjects], tx.time())


def _noted(tx: Transaction, action: str) -> list[str]:
    return [entry.subject_id for entry in audit_page(tx, limit=1_000_000) if entry.action == action]


def fork(urls: Sequence[str], round_number: int, point: str | None, on_hit: int, work: Callable[[World], None]) -> int:
    """Let a process of its own do some work and die at a point on the way."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        if point:
            arm(point, on_hit=on_hit, crash=kill_process)
        # Every other process believes it is a minute later, when the locks of the living have run out.
        work(World(urls, round_number, timedelta(seconds=61) * (on_hit % 2)))
        status = 0
    finally:
        os._exit(status)


def fight(rounds: int, seed: int, urls: Sequence[str]) -> Counter[str]:
    """Fork, kill, wait, again and again; count who died where."""
    chance, deaths = random.Random(seed), Counter[str]()
    points = POINTS if len(urls) == 1 else POINTS_APART
    first = World(urls, 0)
    first.publish(0)
    first.sweep()
    first.consume()
    first.close()
    for number in range(1, rounds + 1):
        works: list[Callable[[World], None]] = [lambda world, number=number: world.publish(number * MESSAGES_A_ROUND)]  # type: ignore[misc]
        works += [World.consume] * (2 if len(urls) == 1 else 1)
        works += [World.sweep] if len(urls) > 1 else []
        running = {}
        for work in works:
            point = chance.choice(points)
            running[fork(urls, number, point, chance.randint(1, 4), work)] = point
        for child, point in running.items():
            _, status = os.waitpid(child, 0)
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
                deaths[point] += 1
            elif status:
                deaths["error"] += 1
    return deaths


def tally(state: Store, far: Store) -> dict[str, object]:
    """Say what became of every message."""
    with state.reading() as tx:
        published, applied, waiting = _noted(tx, "published"), _noted(tx, "applied"), waiting_count(tx)
    with far.reading() as tx:
        aside = [letter.message_id.split("-")[2] for letter in dead_letters_page(tx, limit=1_000_000)]
        queued = sum(queue_lengths(tx).values())
    return {"published": published, "applied": applied, "aside": aside, "waiting": waiting, "queued": queued}


def main(rounds: int, seed: int, urls: Sequence[str]) -> None:
    """Fight, finish, and print the tally as JSON."""
    deaths = fight(rounds, seed, urls)
    world = World(urls, rounds + 2)
    world.sweep()
    world.consume()
    print(json.dumps({"deaths": deaths, **tally(world.state, world.far)}))  # noqa: T201 - the answer to the test


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
