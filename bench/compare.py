"""W(N,S) by our system, by bare loops and by others, in turns: every contestant, then every one again.

    python -m bench.compare                          three rounds of W(1000,5)
    python -m bench.compare --only sqlite bare       contestants whose names contain one of these words
    python -m bench.compare --record                 the same, and write the results to bench/RESULTS.md

`make bench` makes the virtual environments of the others first. The bars are ratios of what was measured in one run.
"""

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import astuple

from bench.contestants import BARS, CONTESTANTS, POSTGRESQL, REDIS, Bar, Contestant, Costs
from bench.measuring import record
from bench.ours import TIMES
from bench.servers import Server, postgresql, redis

Rounds = Mapping[Contestant, Sequence[Costs]]


def measured(
    contestants: Sequence[Contestant], options: argparse.Namespace, given: Mapping[str, Server] | None = None
) -> tuple[Rounds, list[str]]:
    """Let all take turns, and return what each round cost, and on which servers."""
    servers = dict(given or {})
    found: dict[Contestant, list[Costs]] = {one: [] for one in contestants}
    with ExitStack() as stack:
        if any(one.database == POSTGRESQL for one in contestants):
            servers[POSTGRESQL] = stack.enter_context(postgresql(options.postgres))
        if any(one.database == REDIS for one in contestants):
            servers[REDIS] = stack.enter_context(redis())
        for number in range(options.rounds):
            for one in contestants:
                costs = one.run(servers, options.members, options.steps)
                print(f"round {number + 1}: {one.name}: {costs.steps_per_s:,.0f} steps/s", file=sys.stderr, flush=True)
                found[one].append(costs)
    return found, [server.title for server in servers.values()]


def median(rounds: Sequence[Costs]) -> Costs:
    """Return the median of each figure."""
    return Costs(*(statistics.median(values) for values in zip(*map(astuple, rounds), strict=True)))


def table_of(found: Rounds) -> str:
    heads = ["who", "steps/s", "lowest to highest", "CPU seconds per 1,000 steps", "peak memory", "cores others used"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for one, rounds in found.items():
        middle, rates = median(rounds), [costs.steps_per_s for costs in rounds]
        lines.append(
            f"| {one.name} | {middle.steps_per_s:,.0f} | {min(rates):,.0f} to {max(rates):,.0f} "
            f"| {middle.cpu_s_per_1000:.3f} | {middle.peak_mib:,.0f} MiB | {middle.others_cores:.1f} |"
        )
    return "\n".join(lines)


def is_met(bar: Bar, found: Rounds) -> bool:
    return bar.ratio(median(found[bar.ours]), median(found[bar.other])) >= bar.least


def bars_of(bars: Sequence[Bar], found: Rounds) -> str:
    lines = ["| bar | measured | lowest to highest round | asked | |", "|---|---|---|---|---|"]
    for bar in bars:
        ratios = [bar.ratio(*both) for both in zip(found[bar.ours], found[bar.other], strict=True)]
        middle = bar.ratio(median(found[bar.ours]), median(found[bar.other]))
        lines.append(
            f"| {bar.what} | {middle:.2f}x | {min(ratios):.2f}x to {max(ratios):.2f}x | at least {bar.least:.3g}x "
            f"| {'met' if is_met(bar, found) else 'missed'} |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", metavar="WORD", help="contestants whose names contain one of these words")
    parser.add_argument("--postgres", help="URL of a PostgreSQL server to use instead of starting one")
    parser.add_argument("--record", action="store_true", help="write the results to bench/RESULTS.md")
    options = parser.parse_args()
    words = [word.casefold() for word in options.only or [""]]
    contestants = [one for one in CONTESTANTS if any(word in one.name.casefold() for word in words)]
    found, titles = measured(contestants, options)
    bars = [bar for bar in BARS if bar.ours in found and bar.other in found]
    report = f"{table_of(found)}\n\n{bars_of(bars, found)}"
    print(report)
    if options.record:
        several = f"ours and the bare loops {TIMES} times in each, which are over sooner"
        about = f"{'; '.join(titles)}; {options.rounds} rounds in turns, medians; {several}."
        record(f"W({options.members},{options.steps}) beside others", about, report)
    return 0 if all(is_met(bar, found) for bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
