"""What a tick costs, beside reading the rows of the source and decoding them to members.

    python -m bench.tick              SQLite in a temporary folder, and PostgreSQL (see --postgres)
    python -m bench.tick --record     the same, and write the results to bench/RESULTS.md
    python -m bench.tick --size N     a first sight and an unchanged tick of N rows on SQLite, with the memory

The source is an SQLite database of its own with nine columns, one of them multi-valued, in 50 waves.
"""

import resource
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from bench.measuring import CLOCK, NOW, ROUNDS, Ratio, ratio_of, run, seconds
from matoolkit.admin.publishing import publish, set_automation
from matoolkit.bus.sql import SqlBus
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
        with sqlite3.connect(path) as people:
            people.execute(
                "CREATE TABLE people (email, cutover, name, title, department, site, manager, licence, aliases)"
            )
            people.executemany(f"INSERT INTO people VALUES ({', '.join('?' * 9)})", map(_person, range(members)))
        people.close()
        yield SqlSource(f"sqlite:///{path}")


def _person(n: int) -> tuple[str, ...]:
    cutover = NOW + timedelta(days=30 + n % WAVES)
    return (
        f"user{n}@contoso.com",
        f"{cutover:%Y-%m-%d} 20:00",
        f"User Number {n}",
        "Account Manager",
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


def measure_size(members: int) -> None:
    with tempfile.TemporaryDirectory(prefix="bench") as folder, source_of(members) as source:
        store = open_store(f"sqlite:///{folder}/state.db")
        upgrade(store)
        wave = Wave(store, source, "wave")
        least = seconds(lambda: decode(source))
        first = seconds(wave.tick)
        again = seconds(wave.tick)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"| {members:,} | {least:.1f} s | {first:.1f} s | {again:.1f} s | {again / least:.2f}x "
        f"| {1e6 * again / members:.1f} µs | {peak:,.0f} MiB |"
    )


if __name__ == "__main__":
    if "--size" in sys.argv:
        measure_size(int(sys.argv[-1]))
    else:
        sys.exit(run("The tick", measure, __doc__))
