"""How much of a processor a command takes: what somebody waits for who types it, or presses Tab.

python -m bench.commands              an admin API on SQLite in a temporary folder
python -m bench.commands --record     the same, and write the results to bench/RESULTS.md
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

from bench.api import filled, served
from bench.measuring import ROUNDS, record
from matoolkit.store import open_store
from matoolkit.store.upgrade import upgrade

MODULE = [sys.executable, "-m", "matoolkit"]
BARE = [sys.executable, "-c", "pass"]
# Seconds of CPU that a command may take.
LIMITS = {"--version": 0.25, "batch list": 0.45, "batch get ⇥": 0.5}


def cpu_of(command: Sequence[str], environ: Mapping[str, str]) -> float:
    """Return the seconds of CPU that a process took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env={**os.environ, **environ}, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure() -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        store = open_store(f"sqlite:///{folder}/state.db")
        upgrade(store)
        filled(store, 10)
        with served(store) as address:
            where = {"MATOOLKIT_API_URL": address, "HOME": folder}
            tab = {"_MATOOLKIT_COMPLETE": "complete_bash", "COMP_WORDS": "matoolkit batch get ", "COMP_CWORD": "3"}
            tried = {
                "python -c pass": (BARE, where),
                "--version": ([*MODULE, "--version"], where),
                "batch list": ([*MODULE, "batch", "list"], where),
                "batch get ⇥": (MODULE, where | tab),
            }
            for command, environ in tried.values():
                cpu_of(command, environ)
            rounds = [{what: cpu_of(*one) for what, one in tried.items()} for _ in range(ROUNDS)]
        store.close()
    return {what: statistics.median(one[what] for one in rounds) for what in tried}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the results to bench/RESULTS.md")
    options = parser.parse_args()
    found = measure()
    lines = ["| command | CPU | allowed |", "|---|---|---|"]
    for what, taken in found.items():
        limit = f"less than {LIMITS[what]:g} s" if what in LIMITS else ""
        lines.append(f"| `{what}` | {taken:.3f} s | {limit} |")
    report = "\n".join(lines)
    print(report)
    if options.record:
        record("Commands", f"medians of {ROUNDS} rounds; ⇥ is completion in a shell.", report)
    return 0 if all(found[what] < limit for what, limit in LIMITS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
