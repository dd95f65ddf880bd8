"""What a message costs on the SQL bus, beside the same rows moved by the bare driver.

    python -m bench.bus              SQLite in a temporary folder, and PostgreSQL (see --postgres)
    python -m bench.bus --record     the same, and write the results to bench/RESULTS.md
    python -m bench.bus --servicebus     on Azure Service Bus instead, see bench/servicebus.py

Every message is published, received and completed in piles of 500, each pile a commit that is on the disk. The bare
loop inserts, locks and deletes the same rows of the same table in the same piles, and does nothing else.
"""

import sys
from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete

from bench import servicebus
from bench.measuring import NOW, ROUNDS, Ratio, ratio_of, run, seconds
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR
from matoolkit.domain.messages import MemberAdded
from matoolkit.ports import Outgoing
from matoolkit.store import Store, schema
from matoolkit.store.dialect.types import stored_text
from matoolkit.store.queue import queue_lengths

MESSAGES = 20_000
PILE = 500
SHORT, LONG = 1_000, 200_000


def messages(first: int, count: int) -> list[Outgoing]:
    """Make messages of about a kilobyte."""
    key = "k" * 950
    return [Outgoing(f"bench-{n}", MemberAdded(1, key, n)) for n in range(first, first + count)]


def publish(bus: SqlBus, outgoing: Sequence[Outgoing]) -> None:
    for start in range(0, len(outgoing), PILE):
        bus.send(outgoing[start : start + PILE])


def take(bus: SqlBus, count: int) -> None:
    for _ in range(0, count, PILE):
        pile = bus.receive(EVENTS_OF_ORCHESTRATOR, PILE)
        assert bus.complete_now(pile) == PILE


def publish_and_take(bus: SqlBus, outgoing: Sequence[Outgoing]) -> None:
    publish(bus, outgoing)
    take(bus, len(outgoing))


def clear(store: Store) -> None:
    with store.engine.begin() as connection:
        connection.execute(delete(schema.bus_messages))
        connection.execute(delete(schema.bus_recent_ids))


def throughput_ratio(store: Store) -> Ratio:
    bus, names = SqlBus(store), [column.name for column in schema.bus_messages.c if column.name != "id"]
    at: Any = NOW if store.dialect.name == "postgresql" else stored_text(NOW)
    row = {"topic": "t", "subscription": "s", "message_type": "m", "properties_json": "{}", "enqueued_at": at}
    row |= {"body": "b" * 1000, "visible_at": at, "expires_at": at, "lock_token": None, "delivery_count": 0}
    rows = [tuple((row | {"message_id": f"bench-{n}"})[name] for name in names) for n in range(MESSAGES)]
    mine, least = [], []
    for number in range(ROUNDS):
        outgoing = messages(number * MESSAGES, MESSAGES)
        mine.append(seconds(lambda: publish_and_take(bus, outgoing)))  # noqa: B023 - called here and now
        clear(store)
        least.append(seconds(lambda: bare(store, names, rows)))
    what = "publish, receive, complete 20,000 messages of 1 kB ÷ the bare driver"
    return ratio_of(what, least, mine, 3, "at most 3x")


def bare(store: Store, names: Sequence[str], rows: Sequence[tuple[object, ...]]) -> None:
    """Insert, lock and delete rows in piles with nothing but the driver."""
    is_sqlite = store.dialect.name == "sqlite"
    mark, begin = ("?", "BEGIN IMMEDIATE") if is_sqlite else ("%s", "BEGIN")
    connection = store.engine.raw_connection()
    driver: Any = connection.driver_connection
    if not is_sqlite:
        driver.autocommit = True
    cursor = driver.cursor()
    insert = f"INSERT INTO bus_messages ({', '.join(names)}) VALUES ({', '.join([mark] * len(names))})"
    lock = (
        f"UPDATE bus_messages SET lock_token = 'x' WHERE id IN (SELECT id FROM bus_messages ORDER BY id LIMIT {PILE})"
    )
    for start in range(0, len(rows), PILE):
        cursor.execute(begin)
        cursor.executemany(insert, rows[start : start + PILE])
        cursor.execute("COMMIT")
    for _ in range(0, len(rows), PILE):
        cursor.execute(begin)
        locked = cursor.execute(f"{lock} RETURNING id, message_id, body").fetchall()
        cursor.execute("COMMIT")
        cursor.execute(begin)
        cursor.executemany(f"DELETE FROM bus_messages WHERE id = {mark}", [(row[0],) for row in locked])
        cursor.execute("COMMIT")
    if not is_sqlite:
        driver.autocommit = False
    connection.close()


def flatness_ratio(store: Store) -> Ratio:
    """Publish and take 5,000 messages while few wait, and while many do."""
    bus, count = SqlBus(store), 5_000
    clear(store)

    def cycle(first: int) -> float:
        outgoing = messages(first, count)
        return seconds(lambda: publish_and_take(bus, outgoing))

    publish(bus, messages(10_000_000, SHORT))
    few = [cycle(number * count) for number in range(ROUNDS)]
    publish(bus, messages(20_000_000, LONG - SHORT))
    with store.reading() as tx:
        assert sum(queue_lengths(tx).values()) == LONG
    many = [cycle((number + ROUNDS) * count) for number in range(ROUNDS)]
    return ratio_of("a message while 200,000 wait ÷ while 1,000 wait", few, many, 1.25, "at most 1.25x")


def measure(store: Store) -> list[Ratio]:
    return [throughput_ratio(store), flatness_ratio(store)]


if __name__ == "__main__":
    sys.exit(servicebus.main() if "--servicebus" in sys.argv else run("The bus", measure, __doc__))
