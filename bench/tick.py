"""What a tick costs, beside reading the rows of the source and decoding them to members.

    python -m bench.tick              SQLite in a temporary folder, and PostgreSQL (see --postgres)
    python -m bench.tick --record     the same, and write the results to bench/RESULTS.md
    python -m bench.tick --grow       first sight and an unchanged tick of 100,000 and 1,000,000 rows on SQLite, with
                                      the memory, beside a tick that asks for each row alone; --record here too
    python -m bench.tick --grow --size N …     the same for other numbers of rows

The source is an SQLite database of its own with nine columns, one of them multi-valued, in 50 waves.
"""

import argparse
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from sqlalchemy import text

from bench.measuring import CLOCK, NOW, ROUNDS, Ratio, ratio_of, record, run, seconds
from matoolkit.admin.publishing import publish, set_automation
from matoolkit.bus.sql import SqlBus
from matoolkit.domain.keys import folded
from matoolkit.domain.rows import RowReader
from matoolkit.runbook.parse import parse_runbook
from matoolkit.scheduler.leasing import SchedulerLease
from matoolkit.scheduler.tallies import Tally
from matoolkit.scheduler.tick import Scheduler
from matoolkit.sources.sql import SqlSource
from matoolkit.store import Store, open_store
from matoolkit.store.upgrade import upgrade

MEMBERS = 100_000
WAVES = 50
SIZES = (100_000, 1_000_000)
# So many rows tell what each costs alone.
ALONE = 10_000
RUNBOOK = """
name: NAME
data_source:
  type: sql
  connection: SOURCE
  query: SELECT email, cutover, name, title, department, site, manager, licence, aliases FROM people
  primary_key: email
  batch_time_column: cutover
  multi_valued_columns: [{name: aliases, format: semicolon_delimited}]
phases:
  - name: cutover
    offset: T-0
    steps:
      - {name: enable, worker_id: w, function: Set-EntraUserEnabled, params: {UserId: "{{email}}", Enabled: true}}
"""


@contextmanager
def source_of(members: int) -> Iterator[SqlSource]:
    """Make a source with so many people in it."""
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        path = Path(folder) / "source.db"
        make_people(path, members)
        yield SqlSource(f"sqlite:///{path}")


def make_people(path: Path, members: int, letters: int = 0) -> None:
    """Write so many people to a file, each with a title of at least so many letters."""
    with sqlite3.connect(path) as people:
        people.execute("CREATE TABLE people (email, cutover, name, title, department, site, manager, licence, aliases)")
        rows = (_person(n, letters) for n in range(members))
        people.executemany(f"INSERT INTO people VALUES ({', '.join('?' * 9)})", rows)
    people.close()


def _person(n: int, letters: int) -> tuple[str, ...]:
    cutover = NOW + timedelta(days=30 + n % WAVES)
    return (
        f"user{n}@contoso.com",
        f"{cutover:%Y-%m-%d} 20:00",
        f"User Number {n}",
        "Account Manager".ljust(letters, "."),
        f"Department {n % 97}",
        "Bern",
        f"manager{n % 1000}@contoso.com",
        "E5",
        f"u{n}@contoso.com;user.{n}@contoso.com",
    )


def decode(source: SqlSource) -> None:
    description = parse_runbook(RUNBOOK).data_source
    reader = RowReader(description)
    for piece in source.pieces(description.query):
        reader.take(piece.columns, piece.rows)
    reader.reading()


class Wave:
    """A runbook on a source, ticked by itself."""

    def __init__(self, store: Store, source: SqlSource, name: str) -> None:
        self._store = store
        self._name = name
        lease = SchedulerLease(store, "bench", timedelta(minutes=10))
        self._scheduler = Scheduler(store, SqlBus(store), lambda _: source, CLOCK, lease, timedelta(minutes=5))
        publish(store, RUNBOOK.replace("NAME", name), by="bench", now=NOW, enable=True)

    def tick(self) -> Tally:
        (tally,) = (tally for tally in self._scheduler.tick() or [] if tally.runbook_name == self._name)
        assert tally.error is None, tally.error
        return tally

    def switch_off(self) -> None:
        self._scheduler.lease.let_go()
        set_automation(self._store, self._name, enabled=False, by="bench", now=NOW)


def measure(store: Store) -> list[Ratio]:
    with source_of(MEMBERS) as source:
        least, first, again = [], [], []
        for number in range(ROUNDS):
            wave = Wave(store, source, f"wave-{number}")
            least.append(seconds(lambda: decode(source)))
            first.append(seconds(lambda: _check(wave.tick(), added=MEMBERS)))  # noqa: B023 - called at once
            again.append(seconds(lambda: _check(wave.tick(), added=0)))  # noqa: B023 - called at once
            wave.switch_off()
    what = "100,000 members ÷ reading and decoding the rows"
    return [
        ratio_of(f"tick over unchanged {what}", least, again, 2.5, "at most 2.5x"),
        ratio_of(f"first sight in {WAVES} batches of {what}", least, first, 10, "at most 10x"),
    ]


def _check(tally: Tally, added: int) -> None:
    assert (tally.rows_read, tally.members_added, tally.members_refreshed) == (MEMBERS, added, 0)


def row_by_row(store: Store, source: SqlSource, rows: int) -> float:
    """Do the least that a tick without piles does: for each row ask for what is known of it, and for its member."""
    description = parse_runbook(RUNBOOK).data_source
    reader = RowReader(description)
    for piece in source.pieces(description.query):
        reader.take(piece.columns, piece.rows[: rows - len(reader.reading().candidates)])
    known = text("SELECT _row_hash FROM runbook_wave_v1 WHERE _member_key_fold = :key")
    member = text("SELECT id, status, data_hash FROM batch_members WHERE member_key_fold = :key")

    def ask() -> None:
        with store.engine.connect() as connection:
            for candidate in reader.reading().candidates.values():
                connection.execute(known, {"key": folded(candidate.key)}).one()
                connection.execute(member, {"key": folded(candidate.key)}).one()

    return seconds(ask)


def line_of(members: int) -> str:
    """Measure one number of rows, in this process."""
    with tempfile.TemporaryDirectory(prefix="bench") as folder, source_of(members) as source:
        store = open_store(f"sqlite:///{folder}/state.db")
        upgrade(store)
        wave = Wave(store, source, "wave")
        least = seconds(lambda: decode(source))
        first = seconds(wave.tick)
        again = seconds(wave.tick)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        some = min(members, ALONE)
        alone = least + row_by_row(store, source, some) * members / some
        store.close()
    return (
        f"| {members:,} | {least:.1f} s | {first:.1f} s | {again:.1f} s | {again / least:.2f}x "
        f"| {1e6 * again / members:.1f} µs | {peak:,.0f} MiB | {alone:.0f} s | {alone / again:.1f}x |"
    )


def grow(sizes: Sequence[int], *, is_recorded: bool) -> None:
    """Measure numbers of rows, each in a process of its own for the sake of its memory."""
    heads = ["rows", "read and decoded", "first sight", "unchanged", "unchanged ÷ decoded", "unchanged, each row"]
    heads += ["peak memory", "row by row", "row by row ÷ unchanged"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for size in sizes:
        command = [sys.executable, "-m", "bench.tick", "--one", str(size)]
        lines.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    report = "\n".join(lines)
    print(report)
    if is_recorded:
        about = f"SQLite, one run each. Row by row is reckoned from {ALONE:,} rows: two questions for each, no writes."
        record("How a tick grows", about, report)


def main() -> int:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--grow", action="store_true")
    parser.add_argument("--size", type=int, nargs="+", default=SIZES)
    parser.add_argument("--one", type=int)
    options, others = parser.parse_known_args()
    if options.one:
        print(line_of(options.one))
        return 0
    if options.grow:
        grow(options.size, is_recorded="--record" in others)
        return 0
    return run("The tick", measure, __doc__)


if __name__ == "__main__":
    sys.exit(main())
