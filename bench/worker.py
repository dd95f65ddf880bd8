"""What the worker adds to a function's own time, on the SQL bus.

    python -m bench.worker              SQLite in a temporary folder, and PostgreSQL (see --postgres)
    python -m bench.worker --record     the same, and write the results to bench/RESULTS.md

Functions that do nothing: the time for each job is overhead, from the job's message to its settlement. Functions that
wait: how near the worker comes to a bare loop of as many threads that do the same waits and nothing else. Calls of a
tenant that answers in 50 ms, a process of its own: how near it comes to a bare loop of `httpx` with as many threads.
"""

import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
from sqlalchemy import Select, select

from bench.measuring import CLOCK, ROUNDS, Ratio, ratio_of, run, seconds
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import RESULTS_OF_ORCHESTRATOR, WORKER_JOBS
from matoolkit.domain.messages import WorkerJob, correlation_of
from matoolkit.ids import Kind, Reason, job_id
from matoolkit.ports import Outgoing
from matoolkit.settings import WorkerSettings
from matoolkit.store import Store
from matoolkit.store.schema import bus_messages
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.system import build_worker
from matoolkit.worker import Context, Registry, function
from matoolkit.worker.functions import built_in
from matoolkit.worker.masking import Masking

WORKER = "bench"
JOBS = 5_000
WAITS = 2_000
WAIT_SECONDS = 0.05
USER = "ada@contoso.example"
FEW_THREADS = 4
THREADS = 32
MOST_OVERHEAD_SECONDS = 0.001
LEAST_SHARE = 0.85
CALL = "Set-EntraUserEnabled"


@function("Do-Nothing")
def do_nothing(context: Context, user_id: str, enabled: bool = True) -> bool:  # noqa: ARG001
    """Do nothing."""
    return enabled


@function("Wait-Awhile")
def wait_awhile(context: Context, user_id: str) -> dict[str, Any]:  # noqa: ARG001
    """Wait as long as a call of a tenant takes."""
    CLOCK.sleep(WAIT_SECONDS)
    return {"Id": user_id}


@contextmanager
def tenant() -> Iterator[str]:
    """Serve a tenant in which one user lives and every answer takes 50 ms."""
    seed = {
        "users": [{"userPrincipalName": USER, "displayName": "Ada"}],
        "faults": [{"kind": "slow", "times": None, "seconds": WAIT_SECONDS}],
    }
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        path = Path(folder) / "seed.json"
        path.write_bytes(orjson.dumps(seed))
        command = [sys.executable, "-c", "from matoolkit.cli.main import main; main()", "tenant", "serve"]
        server = subprocess.Popen([*command, "--port", "0", "--seed", path], stdout=subprocess.PIPE, text=True)
        assert server.stdout
        yield server.stdout.readline().split()[-1]
        server.terminate()
        server.communicate()


def send(bus: SqlBus, first: int, count: int, name: str, user: str = "user@contoso.example") -> None:
    jobs = [
        WorkerJob(
            job_id(Kind.STEP, number, Reason.ATTEMPT, 1),
            1,
            WORKER,
            name,
            {"UserId": user, "Enabled": True} if name == CALL else {"UserId": user},
            correlation_of(number, Kind.STEP, "bench", 1),
        )
        for number in range(first, first + count)
    ]
    for start in range(0, count, 500):
        bus.send([Outgoing(job.job_id, job) for job in jobs[start : start + 500]])


def work(store: Store, bus: SqlBus, threads: int, url: str | None = None) -> float:
    """Let a worker do all that waits and say how long it took."""
    settings = WorkerSettings(max_parallelism=threads, idle_timeout_seconds=0, simulated_tenant_url=url)
    registry = built_in() if url else Registry(do_nothing, wait_awhile)
    runner = build_worker(bus, settings, WORKER, registry, Masking())
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
    """Whether any job is there; to count them, or to build the question each time, would take the worker's time."""
    with store.reading() as tx:
        return bool(tx.values(_one_job(tx, WORKER_JOBS, f"worker-{WORKER}")))


@prepared
def _one_job(_draft: Drafting, topic: str, subscription: str) -> Select[Any]:
    there = (bus_messages.c.topic == topic, bus_messages.c.subscription == subscription)
    return select(bus_messages.c.id).where(*there).limit(1)


def bare_loop(count: int, work: Callable[[], object]) -> None:
    """Do the same work in as many threads, with nothing around it."""
    numbers = iter(range(count))
    lock = threading.Lock()

    def one_after_the_other() -> None:
        while True:
            with lock:
                if next(numbers, None) is None:
                    return
            work()

    threads = [threading.Thread(target=one_after_the_other) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def bare_calls(url: str) -> None:
    with httpx.Client(limits=httpx.Limits(max_connections=THREADS), trust_env=False) as client:

        def call() -> None:
            headers = {"Authorization": "Bearer bench"}
            client.patch(f"{url}/v1.0/users/{USER}", json={"accountEnabled": True}, headers=headers).raise_for_status()

        bare_loop(WAITS, call)


def measure(store: Store) -> list[Ratio]:
    bus = SqlBus(store)
    bus.start()
    first = 1
    taken: dict[str, list[float]] = {}

    def measured(what: str, count: int, name: str, threads: int, url: str | None = None) -> None:
        nonlocal first
        send(bus, first, count, name, USER)
        first += count
        taken.setdefault(what, []).append(work(store, bus, threads, url))

    with tenant() as url:
        for _ in range(ROUNDS):
            measured("few threads", JOBS, "Do-Nothing", FEW_THREADS)
            measured("many threads", JOBS, "Do-Nothing", THREADS)
            measured("waits", WAITS, "Wait-Awhile", THREADS)
            measured("calls", WAITS, CALL, THREADS, url)
            taken.setdefault("bare", []).append(seconds(lambda: bare_loop(WAITS, lambda: CLOCK.sleep(WAIT_SECONDS))))
            taken.setdefault("bare calls", []).append(seconds(lambda: bare_calls(url)))
    bus.stop()
    allowed = [JOBS * MOST_OVERHEAD_SECONDS]
    nothing = f"{JOBS:,} jobs that do nothing, {{}} threads ÷ a millisecond each"
    waits = f"{WAITS:,} waits of {1000 * WAIT_SECONDS:.0f} ms, {THREADS} threads ÷ the bare loop"
    calls = f"{WAITS:,} calls of a tenant that answers in {1000 * WAIT_SECONDS:.0f} ms ÷ a bare loop of httpx"
    share = f"at most {1 / LEAST_SHARE:.2f}x"
    return [
        ratio_of(nothing.format(FEW_THREADS), allowed, taken["few threads"], 1, "at most 1x"),
        ratio_of(nothing.format(THREADS), allowed, taken["many threads"], 1, "at most 1x"),
        ratio_of(waits, taken["bare"], taken["waits"], 1 / LEAST_SHARE, share),
        ratio_of(calls, taken["bare calls"], taken["calls"], 1 / LEAST_SHARE, share),
    ]


if __name__ == "__main__":
    sys.exit(run("The worker", measure, __doc__))
