"""How much memory ticks take when rows are wide: first sight, then with all rows changed, then unchanged.

python -m bench.wide              200,000 rows of 4 kB on SQLite, in a process of its own
python -m bench.wide --record     the same, and write the results to bench/RESULTS.md
python -m bench.wide --rows N --letters N     other numbers and widths
"""

import argparse
import resource
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.measuring import record, seconds
from bench.tick import Wave, make_people
from matoolkit.sources.sql import SqlSource
from matoolkit.store import open_store
from matoolkit.store.upgrade import upgrade

ROWS = 200_000
LETTERS = 4_000
MOST_MIB = 300


def lines_of(rows: int, letters: int) -> list[str]:
    """Measure in this process: a line for each tick, with the highest memory so far above that before the first."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        people = Path(folder) / "source.db"
        make_people(people, rows, letters)
        store = open_store(f"sqlite:///{folder}/state.db")
        upgrade(store)
        wave = Wave(store, SqlSource(f"sqlite:///{people}"), "wave")
        before = _peak_mib()
        for what in ("first sight", "all rows changed", "unchanged"):
            if what == "all rows changed":
                with sqlite3.connect(people) as source:
                    source.execute("UPDATE people SET site = 'Basel'")
                source.close()
            took = seconds(wave.tick)
            lines.append(f"| {rows:,} x {letters:,} | {what} | {took:.1f} s | {_peak_mib() - before:,.0f} MiB |")
        store.close()
    return lines


def peaks_of(lines: str) -> dict[str, int]:
    """Read the MiB of each tick from its line."""
    cells = [line.split("|") for line in lines.splitlines()]
    return {what.strip(): int(peak.split()[0].replace(",", "")) for _, _, what, _, peak, _ in cells}


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--letters", type=int, default=LETTERS)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print("\n".join(lines_of(options.rows, options.letters)))
        return 0
    sizes = ["--rows", str(options.rows), "--letters", str(options.letters)]
    command = [sys.executable, "-m", "bench.wide", "--here", *sizes]
    measured = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    report = f"| rows | tick | seconds | peak memory above start |\n|---|---|---|---|\n{measured}"
    print(report)
    if options.record:
        record("How wide rows may be", f"SQLite, one run; at most {MOST_MIB} MiB.", report)
    return 0 if max(peaks_of(measured).values()) <= MOST_MIB else 1


if __name__ == "__main__":
    sys.exit(main())
