"""W(N,S) on Dramatiq and Redis: a pipeline for each member, done by two worker processes.

It keeps results and no state of an orchestration; Redis writes its log to the disk once a second.
"""

import os
import subprocess
import sys
from pathlib import Path

import redis

from bench.peers.meter import Meter, arguments, wait_for

WORKERS = 2
THREADS = 8
WARM = 200


def main() -> None:
    options = arguments(__doc__)
    os.environ["BENCH_ADDRESS"] = options.url
    redis.Redis.from_url(options.url).flushall()
    results = redis.Redis.from_url(f"{options.url}/1")
    actors = "bench.peers.dramatiq_actors"
    command = [str(Path(sys.executable).parent / "dramatiq"), actors, "-p", str(WORKERS), "-t", str(THREADS)]
    workers = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)
    try:
        start(WARM, 1)
        wait_for("the warm-up", lambda: results.dbsize() == WARM)
        with Meter(options.server_pid) as meter:
            start(options.members, options.steps)
            wait_for("the pipelines", lambda: results.dbsize() == WARM + options.members * options.steps)
        meter.report(options.members * options.steps)
    finally:
        workers.terminate()
        workers.wait(20)


def start(members: int, steps: int) -> None:
    import dramatiq

    from bench.peers.dramatiq_actors import step

    for _ in range(members):
        messages = [step.message(None, number=0), *(step.message(number=n) for n in range(1, steps))]
        dramatiq.pipeline(messages).run()


if __name__ == "__main__":
    main()
