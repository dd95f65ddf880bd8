"""W(N,S): N members, each S steps one after the other, through the whole system, beside a bare loop over like tables.

    python -m bench.work                      SQLite and PostgreSQL (see --postgres), 1,000 to 100,000 members
    python -m bench.work --record             the same, and write the results to bench/RESULTS.md
    python -m bench.work --only SQLite --members 1000 …     one database, other numbers of members
    python -m bench.work --profile 5000       where the time goes, for one number of members

Everything is durable and embedded: a phase is due, rows are made, jobs go through the bus to a worker that answers at
once, results come back, the next step is sent, until the batch is completed. Scheduler and people are not measured.
Each number of members is measured in a process of its own, for the sake of its memory, in turns with the others.
"""

import argparse
import cProfile
import json
import pstats
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass

from bench.bare import loop_in
from bench.measuring import databases, record, seconds
from bench.wave import Embedded, Wave
from matoolkit.store import open_store
from matoolkit.store.upgrade import upgrade

STEPS = 5
SIZES = {"SQLite": (1_000, 10_000, 100_000), "PostgreSQL": (1_000, 10_000)}
# Cost per step, in CPU time: what neighbours on the machine do to the other kind says nothing about us.
FLAT = 1.25
ROUNDS = 3
# The bare loop is as flat as its indexes: so many members tell how fast it is.
BARE_MEMBERS = 4_000


@dataclass(frozen=True)
class Measured:
    """What one run of W(N,S) cost, and what the bare loop did right after it."""

    members: int
    steps: int
    seconds: float
    cpu_seconds: float
    mebibytes: float
    grown_by: float
    bare_rate: float
    bare_cpu_per_thousand: float

    @property
    def rate(self) -> float:
        return self.members * self.steps / self.seconds

    @property
    def cpu_per_thousand(self) -> float:
        return 1000 * self.cpu_seconds / (self.members * self.steps)


def measure(url: str, members: int, steps: int) -> Measured:
    """Run the whole system, then the bare loop."""
    store = open_store(url)
    upgrade(store)
    wave, system = Wave(store, members, steps), Embedded(store)
    wave.begin(system.bus)
    before, cpu = _peak(), time.process_time()
    taken = seconds(system.run)
    cpu = time.process_time() - cpu
    peak = _peak()
    assert wave.is_completed()
    with loop_in(store, BARE_MEMBERS, steps) as loop:
        loop.prepare()
        bare_cpu = time.process_time()
        bare = seconds(loop.run)
        bare_cpu = time.process_time() - bare_cpu
    store.close()
    bare_steps = BARE_MEMBERS * steps
    return Measured(members, steps, taken, cpu, peak, peak - before, bare_steps / bare, 1000 * bare_cpu / bare_steps)


def profile(members: int, steps: int) -> None:
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        store = open_store(f"sqlite:///{folder}/state.db")
        upgrade(store)
        wave, system = Wave(store, members, steps), Embedded(store)
        wave.begin(system.bus)
        profiler = cProfile.Profile()
        profiler.runcall(system.run)
        assert wave.is_completed()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(40)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_its_own_process(url: str, members: int) -> Measured:
    command = [sys.executable, "-m", "bench.work", "--one", url, "--members", str(members)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def medians(rounds: Sequence[Measured]) -> Measured:
    """Return the median of each figure."""
    figures = zip(*(asdict(one).values() for one in rounds), strict=True)
    return Measured(*(statistics.median(values) for values in figures))


def measured(urls: Mapping[str, str], sizes: Mapping[str, Sequence[int]], rounds: int) -> dict[str, list[Measured]]:
    found: dict[str, list[Measured]] = {}
    for name, url in urls.items():
        each: dict[int, list[Measured]] = {}
        for number in range(rounds):
            for size in sizes[name]:
                if name == "SQLite":
                    with tempfile.TemporaryDirectory(prefix="bench") as folder:
                        one = in_its_own_process(f"sqlite:///{folder}/state.db", size)
                else:
                    one = in_its_own_process(url, size)
                print(f"{name} round {number + 1}: {_line(one, one)}", file=sys.stderr, flush=True)
                each.setdefault(size, []).append(one)
        found[name] = [medians(runs) for runs in each.values()]
    return found


def flatness(one: Measured, smallest: Measured) -> float:
    """Say how much more CPU time a step costs than one of the smallest wave."""
    return one.cpu_per_thousand / smallest.cpu_per_thousand


def _line(one: Measured, smallest: Measured) -> str:
    return (
        f"| {one.members:,.0f} | {one.rate:,.0f} | {one.cpu_per_thousand:.3f} s "
        f"| {smallest.rate / one.rate:.2f}x | {flatness(one, smallest):.2f}x "
        f"| {one.bare_rate:,.0f} | 1/{one.bare_rate / one.rate:.1f} "
        f"| 1/{one.cpu_per_thousand / one.bare_cpu_per_thousand:.1f} "
        f"| {one.mebibytes:,.0f} MiB | {one.grown_by:,.0f} MiB |"
    )


def table_of(results: dict[str, list[Measured]]) -> str:
    heads = ["database", "members", "steps/s", "CPU per 1,000 steps", "time per step ÷ first", "CPU per step ÷ first"]
    heads += ["bare loop, steps/s", "ours ÷ bare", "in CPU time", "peak memory", "of it for the run"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    lines += [f"| {name} {_line(one, runs[0])}" for name, runs in results.items() for one in runs]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", help="URL of an empty PostgreSQL database to use instead of starting one")
    parser.add_argument("--only", choices=list(SIZES), help="one database")
    parser.add_argument("--members", type=int, nargs="+", help="numbers of members to measure")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--one", metavar="URL", help="measure once, in this process, and print JSON")
    parser.add_argument("--profile", type=int, metavar="N", help="profile W(N,S) on SQLite")
    parser.add_argument("--record", action="store_true", help="write the results to bench/RESULTS.md")
    options = parser.parse_args()
    if options.profile:
        profile(options.profile, options.steps)
        return 0
    if options.one:
        print(json.dumps(asdict(measure(options.one, options.members[0], options.steps))))
        return 0
    sizes = dict.fromkeys(SIZES, options.members) if options.members else SIZES
    names = [options.only] if options.only else list(SIZES)
    with databases(options.postgres) if "PostgreSQL" in names else nullcontext({"SQLite": ""}) as urls:
        results = measured({name: urls[name] for name in names}, sizes, options.rounds)
    report = table_of(results)
    print(report)
    if options.record:
        record(f"W(N,{options.steps})", f"medians of {options.rounds} rounds.", report)
    return 0 if all(flatness(one, runs[0]) <= FLAT for runs in results.values() for one in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
