"""What the worker adds to a function's own time, on the SQL bus.

    python -m bench.worker              SQLite in a temporary folder, and PostgreSQL (see --postgres)
    python -m bench.worker --record     the same, and add the results to bench/RESULTS.md

Functions that do nothing: the time for each job is overhead, from the job's message to its settlement. Functions that
wait: how near the worker comes to a bare loop of as many threads that do the same waits and nothing else.
"""

import sys
import threading
from typing import Any

from bench.measuring import CLOCK, ROUNDS, Ratio, ratio_of, run, seconds
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import RESULTS_OF_ORCHESTRATOR
from matoolkit.domain.messages import Correlation, WorkerJob
from matoolkit.ids import Kind, Reason, job_id
from matoolkit.ports import Outgoing
from matoolkit.settings import WorkerSettings
from matoolkit.store import Store
from matoolkit.store.queue import queue_lengths
from matoolkit.system import build_worker
from matoolkit.worker import Context, Registry, function
from matoolkit.worker.masking import Masking

WORKER = "bench"
JOBS = 5_000
WAITS = 2_000
WAIT_SECONDS = 0.05
FEW_THREADS = 4
THREADS = 32
MOST_OVERHEAD_SECONDS = 0.001
LEAST_SHARE = 0.85


@function("Do-Nothing")
def do_nothing(context: Context, user_id: str, enabled: bool = True) -> bool:  # noqa: ARG001
    """Do nothing."""
    return enabled


@function("Wait-Awhile")
def wait_awhile(context: Context, user_id: str) -> dict[str, Any]:  # noqa: ARG001
    """Wait as long as a call of a tenant takes."""
    CLOCK.sleep(WAIT_SECONDS)
    return {"Id": user_id}


def send(bus: SqlBus, first: int, count: int, name: str) -> None:
    jobs = [
        WorkerJob(
            job_id(Kind.STEP, number, Reason.ATTEMPT, 1),
            1,
            WORKER,
            name,
            {"UserId": f"user-{number}@contoso.example"},
            Correlation(number, Kind.STEP, "bench", 1),
        )
        for number in range(first, first + count)
    ]
    for start in range(0, count, 500):
        bus.send([Outgoing(job.job_id, job) for job in jobs[start : start + 500]])


def work(store: Store, bus: SqlBus, threads: int) -> float:
    """Let a worker do all that waits and say how long it took."""
    settings = WorkerSettings(max_parallelism=threads, idle_timeout_seconds=0)
    runner = build_worker(bus, settings, WORKER, Registry(do_nothing, wait_awhile), Masking())
    stop = threading.Event()

    def until_done() -> None:
        while waiting(store):
            stop.wait(0.02)
        stop.set()

    watcher = threading.Thread(target=until_done)
    start = CLOCK.monotonic()
    worker = threading.Thread(target=lambda: runner.run(stop))
    worker.start()
    watcher.start()
    watcher.join()
    taken = CLOCK.monotonic() - start
    worker.join()
    runner.close()
    bus.complete_now(bus.receive(RESULTS_OF_ORCHESTRATOR, JOBS))
    return taken


def waiting(store: Store) -> bool:
    with store.reading() as tx:
        return any(name == f"worker-{WORKER}" for _, name in queue_lengths(tx))


def bare_waits(count: int) -> None:
    """Do the same waits in as many threads, with nothing around them."""
    numbers = iter(range(count))
    lock = threading.Lock()

    def one_after_the_other() -> None:
        while True:
            with lock:
                if next(numbers, None) is None:
                    return
            CLOCK.sleep(WAIT_SECONDS)

    threads = [threading.Thread(target=one_after_the_other) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure(store: Store) -> list[Ratio]:
    bus = SqlBus(store)
    bus.start()
    first = 1
    taken: dict[str, list[float]] = {}

    def measured(what: str, count: int, name: str, threads: int) -> None:
        nonlocal first
        send(bus, first, count, name)
        first += count
        taken.setdefault(what, []).append(work(store, bus, threads))

    for _ in range(ROUNDS):
        measured("few threads", JOBS, "Do-Nothing", FEW_THREADS)
        measured("many threads", JOBS, "Do-Nothing", THREADS)
        measured("waits", WAITS, "Wait-Awhile", THREADS)
        taken.setdefault("bare", []).append(seconds(lambda: bare_waits(WAITS)))
    bus.stop()
    allowed = [JOBS * MOST_OVERHEAD_SECONDS]
    nothing = f"{JOBS:,} jobs that do nothing, {{}} threads ÷ a millisecond each"
    waits = f"{WAITS:,} waits of {1000 * WAIT_SECONDS:.0f} ms, {THREADS} threads ÷ the bare loop"
    return [
        ratio_of(nothing.format(FEW_THREADS), allowed, taken["few threads"], 1, "at most 1x"),
        ratio_of(nothing.format(THREADS), allowed, taken["many threads"], 1, "at most 1x"),
        ratio_of(waits, taken["bare"], taken["waits"], 1 / LEAST_SHARE, f"at most {1 / LEAST_SHARE:.2f}x"),
    ]


if __name__ == "__main__":
    sys.exit(run("The worker", measure, __doc__))
