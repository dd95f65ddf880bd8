"""What a message costs on Service Bus, beside a bare loop of the SDK, over a wire with a round trip of 5 ms.

    python -m bench.bus --servicebus              all of it, which takes a few minutes
    python -m bench.bus --servicebus --record     the same, and write the results to bench/RESULTS.md

The namespace is the one of the tests, in a process of its own. The bare loop receives piles of 250 and completes each
in one gather, with the same settings of the SDK, and nothing ever breaks. Ours does the same through the port, while
links are dropped at random. Then a worker does jobs one after the other, which is the way of a message twice.
"""

import argparse
import asyncio
import logging
import random
import statistics
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from azure.servicebus.aio import ServiceBusClient
from pydantic import SecretStr

from bench.measuring import CLOCK, Ratio, ratio_of, record, table_of
from matoolkit.bus.servicebus import Address, ServiceBus
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR
from matoolkit.domain.messages import MemberAdded, WorkerJob, correlation_of
from matoolkit.ids import Kind, Reason, job_id
from matoolkit.ports import Outgoing, Received
from matoolkit.settings import WorkerSettings
from matoolkit.system import build_worker
from matoolkit.worker import Context, Registry, function
from matoolkit.worker.masking import Masking

MESSAGES, JOBS = 20_000, 200
PILE = 250
ROUND_TRIP = 0.005
LEAST_SHARE = 0.6
MOST_P95_SECONDS = 0.3
WORKER = "bench"


@function("Do-Nothing")
def do_nothing(context: Context, user_id: str) -> bool:  # noqa: ARG001
    """Do nothing."""
    return True


class Namespace:
    """The tests' Service Bus in another process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._turn = threading.Lock()
        assert process.stdout
        self.address = process.stdout.readline().strip()

    def ask(self, command: str) -> str:
        """Have something done, and return the answer."""
        with self._turn:
            assert self._process.stdin
            assert self._process.stdout
            self._process.stdin.write(command + "\n")
            self._process.stdin.flush()
            return self._process.stdout.readline().strip()

    def bus(self) -> ServiceBus:
        return ServiceBus(Address(connection_string=SecretStr(self.address)))


@contextmanager
def namespace() -> Iterator[Namespace]:
    command = [sys.executable, "-m", "tests.servers.servicebus", WORKER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        found = Namespace(process)
        found.ask(f"delay {ROUND_TRIP / 2}")
        yield found
        process.communicate()


@contextmanager
def dropping(server: Namespace, seed: int) -> Iterator[list[str]]:
    """Break links or connections now and then while this lasts, and say how."""
    drops: list[str] = []
    is_over = threading.Event()
    chance = random.Random(seed)

    def drop() -> None:
        while not is_over.wait(chance.uniform(5, 15)):
            drops.append(chance.choice(["cut", "detach"]))
            server.ask(drops[-1])

    thread = threading.Thread(target=drop)
    thread.start()
    try:
        yield drops
    finally:
        is_over.set()
        thread.join()


def publish(bus: ServiceBus, first: int, count: int) -> None:
    """Send messages of about a kilobyte."""
    key = "k" * 950
    for start in range(first, first + count, PILE):
        end = min(start + PILE, first + count)
        bus.send([Outgoing(f"bench-{n}", MemberAdded(1, key, n)) for n in range(start, end)])


def bare(server: Namespace, count: int) -> float:
    """Receive and complete messages with nothing but the SDK; return how long it took."""

    async def loop() -> float:
        topic, name = EVENTS_OF_ORCHESTRATOR.topic, EVENTS_OF_ORCHESTRATOR.name
        async with (
            ServiceBusClient.from_connection_string(server.address) as client,
            client.get_subscription_receiver(topic, name, prefetch_count=0, socket_timeout=0.02) as receiver,
        ):
            start = CLOCK.monotonic()
            done = 0
            while done < count:
                pile = await receiver.receive_messages(PILE, max_wait_time=5)
                await asyncio.gather(*(receiver.complete_message(message) for message in pile))
                done += len(pile)
            return CLOCK.monotonic() - start

    return asyncio.run(loop())


@dataclass(frozen=True)
class Taken:
    seconds: float
    deliveries: Counter[str]
    settled: int


def take(server: Namespace, bus: ServiceBus, count: int) -> Taken:
    """Receive and complete messages through the port until all were there and none is left."""
    deliveries: Counter[str] = Counter()
    settled = 0
    start = CLOCK.monotonic()
    while len(deliveries) < count or int(server.ask("left orchestrator-events orchestrator")):
        pile = bus.receive(EVENTS_OF_ORCHESTRATOR, PILE)
        deliveries.update(message.message_id for message in pile)
        settled += bus.complete_now(pile)
    return Taken(CLOCK.monotonic() - start, deliveries, settled)


def throughput(server: Namespace, count: int) -> tuple[list[Ratio], str]:
    bus = server.bus()
    bus.receive(EVENTS_OF_ORCHESTRATOR, PILE)  # opens the link
    publish(bus, 0, count)
    least = bare(server, count)
    publish(bus, count, count)
    calm = take(server, bus, count)
    publish(bus, 2 * count, count)
    with dropping(server, seed=1) as drops:
        rough = take(server, bus, count)
    bus.stop()
    assert len(rough.deliveries) == count, "messages were lost"
    assert rough.settled <= count, "messages were settled twice"
    what = f"receive and complete {count:,} messages of 1 kB"
    most = 1 / LEAST_SHARE
    limit = f"at most {most:.2f}x"
    ratios = [
        ratio_of(f"{what} ÷ the bare SDK", [least], [calm.seconds], most, limit),
        ratio_of(
            f"the same with {len(drops)} drops ÷ the bare SDK without", [least], [rough.seconds], 1 / LEAST_SHARE, limit
        ),
    ]
    again = sum(rough.deliveries.values()) - count
    told = (
        f"{count / least:.0f}, {count / calm.seconds:.0f} and {count / rough.seconds:.0f} messages/s. With"
        f" {Counter(drops)['cut']} connections cut and links detached {Counter(drops)['detach']} times none was lost,"
        f" {again} came again, and {rough.settled:,} counted as settled."
    )
    return ratios, told


def job_to_result(server: Namespace, count: int) -> list[float]:
    """Send jobs to a worker one after the other; return how long each took until its result was received."""
    settings = WorkerSettings(max_parallelism=4, idle_timeout_seconds=0, worker_announce=False)
    mine, workers = server.bus(), server.bus()
    runner = build_worker(workers, settings, WORKER, Registry(do_nothing), Masking())
    stop = threading.Event()
    thread = threading.Thread(target=lambda: runner.run(stop))
    thread.start()
    taken = []
    for number in range(count + 5):
        job = WorkerJob(
            job_id(Kind.STEP, number, Reason.ATTEMPT, 1),
            1,
            WORKER,
            "Do-Nothing",
            {"UserId": "ada@contoso.example"},
            correlation_of(number, Kind.STEP, "bench", 1),
        )
        start = CLOCK.monotonic()
        mine.send([Outgoing(job.job_id, job)])
        pile: list[Received] = []
        while not pile:
            mine.wait(RESULTS_OF_ORCHESTRATOR, 5)
            pile = mine.receive(RESULTS_OF_ORCHESTRATOR, PILE)
        taken.append(CLOCK.monotonic() - start)
        mine.complete_now(pile)
    stop.set()
    thread.join()
    runner.close()
    workers.stop()
    mine.stop()
    return taken[5:]  # the first ones open the links


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servicebus", action="store_true")
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--record", action="store_true", help="write the results to bench/RESULTS.md")
    options = parser.parse_args()
    for name in ("azure.servicebus", "asyncio"):  # they tell every drop at length
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with namespace() as server:
        ratios, told = throughput(server, options.messages)
        server.ask("empty")
        server.ask(f"delay {ROUND_TRIP / 2}")
        times = job_to_result(server, JOBS)
    p95 = statistics.quantiles(times, n=20)[-1]
    told += (
        f" From a job that is sent to its result that is received: median {statistics.median(times) * 1000:.0f} ms,"
        f" p95 {p95 * 1000:.0f} ms (allowed: {MOST_P95_SECONDS * 1000:.0f} ms)."
    )
    report = table_of({"Service Bus": ratios}) + "\n\n" + told
    print(report)
    if options.record:
        record("Service Bus", f"one run at a round trip of {ROUND_TRIP * 1000:.0f} ms.", report)
    return 0 if all(ratio.is_met for ratio in ratios) and p95 <= MOST_P95_SECONDS else 1
