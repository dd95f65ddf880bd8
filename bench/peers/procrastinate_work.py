"""W(N,S) on Procrastinate: each step is a task that defers the next one, done by two worker processes."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import psycopg

from bench.peers.meter import Meter, arguments, wait_for

WORKERS = 2
CONCURRENCY = 32
WARM = 200


def main() -> None:
    options = arguments(__doc__)
    os.environ["BENCH_ADDRESS"] = options.url
    from bench.peers.procrastinate_tasks import prepare, start

    asyncio.run(prepare())
    connection = psycopg.connect(options.url, autocommit=True)

    def succeeded() -> int:
        row = connection.execute("SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'").fetchone()
        return int(row[0]) if row else 0

    workers = [worker() for _ in range(WORKERS)]
    try:
        asyncio.run(start(WARM, 1))
        wait_for("the warm-up", lambda: succeeded() == WARM)
        with Meter(options.server_pid) as meter:
            asyncio.run(start(options.members, options.steps))
            wait_for("the tasks", lambda: succeeded() == WARM + options.members * options.steps)
        meter.report(options.members * options.steps)
    finally:
        for process in workers:
            process.terminate()
        for process in workers:
            process.wait(20)


def worker() -> subprocess.Popen[bytes]:
    program = str(Path(sys.executable).parent / "procrastinate")
    command = [program, "-a", "bench.peers.procrastinate_tasks.app", "worker", "-q", "bench", "-c", str(CONCURRENCY)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)


if __name__ == "__main__":
    main()
