"""How long the next job takes: from a result handed to the bus until the worker has the member's next job.

    python -m bench.latency              SQLite in a temporary folder, and PostgreSQL (see --postgres)
    python -m bench.latency --record     the same, and write the results to bench/RESULTS.md

Orchestrator and worker run in threads of one process, as `matoolkit up` runs them. Idle is one member after the other,
so that everybody waits for the message at hand; full load is W(1000,5), where piles wait for each other.
"""

import argparse
import itertools
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select

from bench.measuring import CLOCK, databases, record
from bench.peers.meter import wait_for
from bench.wave import WORKER, Wave, in_threads
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import jobs_of_worker
from matoolkit.domain.messages import WorkerResult
from matoolkit.ids import parse_job_id
from matoolkit.ports import Outgoing, Received, Subscription
from matoolkit.store import Store, open_store, schema
from matoolkit.store.upgrade import upgrade

ALONE, STEPS_ALONE = 50, 11
LOAD = (1_000, 5)
MOST_MEDIAN_MS, MOST_P99_MS = 5, 20


class TimedBus(SqlBus):
    """A bus that notes when results are handed to it, and when jobs are received."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.sent: dict[int, float] = {}
        self.published: dict[int, float] = {}
        self.received: dict[int, float] = {}

    def answer(self, answers: Sequence[Outgoing], messages: Sequence[Received]) -> None:
        """Publish results, and note when that began and ended."""
        steps = [_step(one.message.job_id) for one in answers if isinstance(one.message, WorkerResult)]
        self.sent |= dict.fromkeys(steps, CLOCK.monotonic())
        super().answer(answers, messages)
        self.published |= dict.fromkeys(steps, CLOCK.monotonic())

    def receive(self, subscription: Subscription, most: int) -> list[Received]:
        """Receive messages, and note when they are there."""
        pile = super().receive(subscription, most)
        if subscription == jobs_of_worker(WORKER):
            self.received |= dict.fromkeys((_step(one.message_id) for one in pile), CLOCK.monotonic())
        return pile


@dataclass(frozen=True)
class Latency:
    """Milliseconds to the next job: from the result handed over, and from the moment it was published."""

    what: str
    handed_over: Sequence[float]
    published: Sequence[float]

    @property
    def is_met(self) -> bool:
        return statistics.median(self.published) < MOST_MEDIAN_MS and _p99(self.published) < MOST_P99_MS

    def line(self, database: str) -> str:
        return (
            f"| {database} | {self.what} | {len(self.handed_over):,} | {statistics.median(self.handed_over):.1f} ms "
            f"| {_p99(self.handed_over):.1f} ms | {statistics.median(self.published):.1f} ms "
            f"| {_p99(self.published):.1f} ms |"
        )


def latency(store: Store, what: str, waves: Sequence[Wave]) -> Latency:
    """Let batches go through, one after the other."""
    bus = TimedBus(store)
    with in_threads(store, bus):
        for wave in waves:
            wave.begin(bus)
            wait_for("the batch", wave.is_completed)
    after = _next_steps(store)
    pairs = [(step, after[step]) for step in bus.sent if step in after]

    def taken(since: dict[int, float]) -> list[float]:
        return [1000 * (bus.received[later] - since[step]) for step, later in pairs]

    return Latency(what, taken(bus.sent), taken(bus.published))


def _next_steps(store: Store) -> dict[int, int]:
    """Find the step that follows each step of a member."""
    steps = schema.step_executions.c
    query = select(steps.id, steps.batch_member_id).order_by(steps.batch_member_id, steps.step_index)
    with store.engine.connect() as connection:
        rows = connection.execute(query).all()
    return {one.id: two.id for one, two in itertools.pairwise(rows) if one[1] == two[1]}


def _step(job_id: str) -> int:
    job = parse_job_id(job_id)
    assert job is not None
    return job.execution_id


def _p99(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[-1]


def measure(store: Store) -> list[Latency]:
    latency(store, "warm-up", [Wave(store, 2, 10)])
    return [
        latency(store, "idle", [Wave(store, 1, STEPS_ALONE) for _ in range(ALONE)]),
        latency(store, "full load, W({:,},{})".format(*LOAD), [Wave(store, *LOAD)]),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", help="URL of an empty PostgreSQL database to use instead of starting one")
    parser.add_argument("--record", action="store_true", help="write the results to bench/RESULTS.md")
    options = parser.parse_args()
    heads = ["database", "when", "results", "median", "p99", "median after publication", "p99 after publication"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    idle = []
    with databases(options.postgres) as urls:
        for name, url in urls.items():
            store = open_store(url)
            upgrade(store)
            found = measure(store)
            store.close()
            idle.append(found[0])
            lines += [one.line(name) for one in found]
    report = "\n".join(lines)
    print(report)
    if options.record:
        about = (
            f"idle, after publication, it should be below {MOST_MEDIAN_MS} ms, and {MOST_P99_MS} ms at the 99th"
            " percentile. The first two columns begin when the worker hands the result over."
        )
        record("From a result to the next job", about, report)
    return 0 if idle[0].is_met else 1


if __name__ == "__main__":
    sys.exit(main())
