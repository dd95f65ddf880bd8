"""What the admin API's answers cost as batches grow, and whether a batch at work gets in the way of those who look on.

    python -m bench.api              SQLite in a temporary folder, and PostgreSQL (see --postgres)
    python -m bench.api --record     the same, and write the results to bench/RESULTS.md

The API is a process of its own. Each kind of answer is asked for by eight clients at once, about a batch of 10 members
and about larger ones in turn, in one database and one run; what is compared is the 95th percentile. Then a hundred
clients look at a batch of 10,000 members while it runs, and not one of them may see an error.
"""

import os
import re
import statistics
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from math import isfinite

import httpx
from sqlalchemy import text, update

from bench.measuring import CLOCK, NOW, Ratio, ratio_of, run
from bench.wave import Embedded, Wave
from matoolkit.admin.publishing import publish
from matoolkit.domain.states import BatchStatus, StepStatus
from matoolkit.store import Store
from matoolkit.store.batches import NewBatch, insert_batches
from matoolkit.store.counting import count_again
from matoolkit.store.executions import NewExecution
from matoolkit.store.members import NewMember, insert_members
from matoolkit.store.phases import NewPhase, dispatch_phases, insert_phases, note_expanded
from matoolkit.store.schema import step_executions
from matoolkit.store.steps import PhasePlace, insert_phase_steps

SIZES = (10, 10_000, 100_000)
STEPS = 5
CLIENTS = 8
ASKED = 12
ROUNDS = 5
AT_WORK = 2
ALLOWED = {10_000: 3.0}
# What is counted as it changes costs the same however much there is.
ALLOWED_COUNTED = {10_000: 1.5, 100_000: 1.5}
COUNTED = ("list of batches", "detail of a batch", "phases of a batch")
READERS = 100
RUNNING_MEMBERS = 10_000
COMMAND = [sys.executable, "-c", "from matoolkit.cli.main import main; main()", "api", "serve", "--port", "0"]
RUNBOOK = """
name: NAME
data_source: {type: sql, connection: SOURCE, query: SELECT email FROM people, primary_key: email, batch_time: immediate}
phases:
  - {name: cutover, offset: T-0, steps: [{name: one, worker_id: w, function: Set-EntraUserEnabled}]}
"""
# What is asked for, of a batch and its runbook.
QUESTIONS = {
    "list of batches": "/api/batches?runbook={name}",
    "detail of a batch": "/api/batches/{batch}",
    "phases of a batch": "/api/batches/{batch}/phases",
    "page of members": "/api/batches/{batch}/members?limit=10",
    "page of failed members": "/api/batches/{batch}/members?limit=10&status=failed",
    "page of steps": "/api/batches/{batch}/steps?limit=10",
}


@contextmanager
def served(store: Store) -> Iterator[str]:
    url = store.engine.url.render_as_string(hide_password=False)
    environ = {**os.environ, "MATOOLKIT_DATABASE_URL": url, "MATOOLKIT_LOG_FORMAT": "text"}
    with subprocess.Popen(COMMAND, env=environ, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        said = next(line for line in process.stderr if "serving the admin API" in line)
        threading.Thread(target=process.stderr.read, daemon=True).start()
        (port,) = re.findall(r"port (\d+)", said)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def filled(store: Store, members: int) -> dict[str, object]:
    """Make a batch whose members are all in the middle of a phase, and say how to ask for it."""
    row = publish(store, RUNBOOK.replace("NAME", f"size-{members}"), by="bench", now=NOW).row
    assert row is not None
    below = step_executions.c.step_index
    work = [NewExecution(step_name=f"s{n}", step_index=n, worker_id="w", timeout_sec=60) for n in range(STEPS)]
    with store.transaction() as tx:
        (batch,) = insert_batches(tx, [NewBatch(row.id, row.name, NOW, BatchStatus.ACTIVE)], NOW)
        (phase,) = insert_phases(tx, [NewPhase(batch.id, row.version, "cutover", 0, 0, NOW)])
        dispatch_phases(tx, [phase.id], NOW)
    for first in range(0, members, 5_000):
        numbers = range(first, min(first + 5_000, members))
        with store.transaction() as tx:
            row_of = '{"a": "%s"}' % ("x" * 200)
            new = [NewMember(batch.id, f"user{n}@contoso.com", row_of, "h", caught_up_at=NOW) for n in numbers]
            ids = [one.id for one in insert_members(tx, new, NOW)]
            insert_phase_steps(tx, PhasePlace(phase.id, row.version, 0), work, ids, NOW)
    with store.transaction() as tx:
        note_expanded(tx, [phase.id], NOW)
        for status, place in {StepStatus.SUCCEEDED: below < AT_WORK, StepStatus.DISPATCHED: below == AT_WORK}.items():
            mine = update(step_executions).where(step_executions.c.batch_id == batch.id, place)
            tx.execute(mine.values(status=status))
        count_again(tx, [batch.id])  # the moves were not made one by one
    return {"name": row.name, "batch": batch.id}


def p95(client: httpx.Client, path: str) -> float:
    def ask(_: int) -> list[float]:
        taken = []
        for _ in range(ASKED):
            began = CLOCK.monotonic()
            assert client.get(path).status_code == 200
            taken.append(CLOCK.monotonic() - began)
        return taken

    with ThreadPoolExecutor(CLIENTS) as clients:
        times = sorted(one for several in clients.map(ask, range(CLIENTS)) for one in several)
    return times[int(len(times) * 0.95)]


def growth(store: Store) -> list[Ratio]:
    places = {size: filled(store, size) for size in SIZES}
    with store.transaction() as tx:
        tx.execute(text("ANALYZE"))
    found = []
    with served(store) as address, httpx.Client(base_url=address, timeout=60) as client:
        for what, question in QUESTIONS.items():
            times: dict[int, list[float]] = {size: [] for size in SIZES}
            for _ in range(ROUNDS):
                for size, place in places.items():
                    times[size].append(p95(client, question.format(**place)))
            for size in SIZES[1:]:
                title = f"{what}, {size:,} members ÷ {SIZES[0]} members, p95"
                most = (ALLOWED_COUNTED if what in COUNTED else ALLOWED).get(size, float("inf"))
                limit = f"at most {most:g}x" if isfinite(most) else "no limit"
                found.append(ratio_of(title, times[SIZES[0]], times[size], most, limit))
    return found


def looking_on(store: Store) -> Ratio:
    """Let a hundred clients look on while a batch runs, and compare their answers with those before."""
    wave, system = Wave(store, RUNNING_MEMBERS, STEPS), Embedded(store)
    wave.begin(system.bus)
    over = threading.Event()
    seen: Counter[object] = Counter()
    with served(store) as address, httpx.Client(base_url=address, timeout=120) as client:
        batch = client.get("/api/batches?limit=1").json()["items"][0]["id"]
        paths = [question.format(batch=batch, name="size-10") for question in QUESTIONS.values()]
        alone = [p95(client, paths[1]) for _ in range(ROUNDS)]
        times: list[float] = []

        def look(number: int) -> None:
            with httpx.Client(base_url=address, timeout=120) as own:
                for path in cycle(paths[number % len(paths) :] + paths[: number % len(paths)]):
                    if over.is_set():
                        return
                    began = CLOCK.monotonic()
                    try:
                        seen[own.get(path).status_code] += 1
                    except httpx.HTTPError as error:
                        seen[type(error).__name__] += 1
                    times.append(CLOCK.monotonic() - began)

        with ThreadPoolExecutor(READERS) as readers:
            for number in range(READERS):
                readers.submit(look, number)
            system.run()
            over.set()
    assert wave.is_completed()
    errors = sum(count for answer, count in seen.items() if answer != 200)
    what = f"answers to {READERS} clients while {RUNNING_MEMBERS:,} members run ÷ to {CLIENTS} alone; errors: {errors}"
    ours = statistics.quantiles(times, n=20)[-1]
    return Ratio(f"{what} of {sum(seen.values()):,}", statistics.median(alone), ours, "no error", errors == 0)


def measure(store: Store) -> list[Ratio]:
    return [*growth(store), looking_on(store)]


if __name__ == "__main__":
    sys.exit(run("The admin API", measure, __doc__))
