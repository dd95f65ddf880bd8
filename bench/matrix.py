"""How long the matrix of a batch takes: to make its bytes, to look again, and to be drawn in a browser.

    python -m bench.matrix              SQLite in a temporary folder, and PostgreSQL (see --postgres)
    python -m bench.matrix --record     the same, and write the results to bench/RESULTS.md

Batches of 10,000 and of 100,000 members are in the middle of the third of five phases, which have fourteen steps. A
Chromium loads the page again and again; what is taken is the time from when the bytes have arrived to when both
canvases are drawn, which the page measures itself.
"""

import argparse
import statistics
import sys
from dataclasses import dataclass

from playwright.sync_api import Browser
from sqlalchemy import case, text, update
from tests.servers.browser import browsing

from bench.measuring import NOW, databases, record, seconds
from bench.pages import served
from matoolkit.admin.matrix import read_matrix
from matoolkit.admin.publishing import publish
from matoolkit.domain.states import BatchStatus
from matoolkit.store import Store, Transaction, open_store
from matoolkit.store.batches import NewBatch, insert_batches
from matoolkit.store.counting import count_again
from matoolkit.store.executions import NewExecution
from matoolkit.store.members import NewMember, insert_members
from matoolkit.store.phases import NewPhase, PhaseRow, dispatch_phases, insert_phases, note_expanded
from matoolkit.store.schema import step_executions
from matoolkit.store.steps import PhasePlace, insert_phase_steps
from matoolkit.store.upgrade import upgrade
from matoolkit.web.matrices import Matrices

SIZES = (10_000, 100_000)
PHASES = {"prepare": 3, "stage": 4, "cutover": 4, "verify": 2, "clean-up": 1}
BEGUN = 3
ROUNDS, VISITS = 3, 9
PILE = 5_000
ALLOWED_MS = 100
ABOUT = f"""medians of {ROUNDS} looks and of {VISITS} visits; drawn in software, in Chromium at 1440 pixels; while this
ran, the machine had other work. Allowed: {ALLOWED_MS} ms from bytes to picture, as median."""
HEADING = (
    "| database | batch | first look | a phase moves | nothing moved | sent, packed | bytes to picture | longest |",
    "|---|---|---|---|---|---|---|---|",
)
SOURCE = """\
name: NAME
data_source:
  {type: sql, connection: C, query: 'SELECT Email, Start FROM people', primary_key: Email, batch_time_column: Start}
phases:
"""
# One of a thousand steps failed, and a tenth of the third phase is under way.
FAILED_OF, UNDER_WAY_OF = 1_009, 10


@dataclass(frozen=True)
class Measured:
    """What was measured with a batch of one size."""

    members: int
    first: float
    again: float
    nothing: float
    sent: int
    drawn: list[float]

    @property
    def row(self) -> str:
        looks = " | ".join(f"{one:.3f} s" for one in (self.first, self.again, self.nothing))
        times = " | ".join(f"{one:.0f} ms" for one in (statistics.median(self.drawn), max(self.drawn)))
        return f"{self.members:,} x {sum(PHASES.values())} | {looks} | {self.sent / 1000:,.0f} kB | {times}"


def text_of(name: str) -> str:
    lines = [SOURCE.replace("NAME", name)]
    for day, (phase, count) in enumerate(PHASES.items()):
        lines.append(f"  - name: {phase}\n    offset: T-{9 - day}d\n    steps:\n")
        lines += [f"      - {{name: {phase}-{n}, worker_id: w, function: Custom-F{n}}}\n" for n in range(count)]
    return "".join(lines)


def filled(store: Store, members: int) -> int:
    """Make a batch in the middle of its third phase."""
    row = publish(store, text_of(f"matrix-{members}"), by="bench", now=NOW).row
    assert row is not None
    with store.transaction() as tx:
        (batch,) = insert_batches(tx, [NewBatch(row.id, row.name, NOW, BatchStatus.ACTIVE)], NOW)
        new = [NewPhase(batch.id, row.version, name, n, (9 - n) * 1440, NOW) for n, name in enumerate(PHASES)]
        phases = insert_phases(tx, new)[:BEGUN]
        dispatch_phases(tx, [phase.id for phase in phases], NOW)
    for first in range(0, members, PILE):
        with store.transaction() as tx:
            numbers = range(first, min(first + PILE, members))
            data = '{"a": "%s"}' % ("x" * 200)
            people = [NewMember(batch.id, f"user{n}@contoso.com", data, "h", caught_up_at=NOW) for n in numbers]
            ids = [one.id for one in insert_members(tx, people, NOW)]
            for place, phase in enumerate(phases):
                insert_phase_steps(tx, PhasePlace(phase.id, row.version, place), work_of(phase), ids, NOW)
    with store.transaction() as tx:
        advance(tx, phases, batch.id)
        note_expanded(tx, [phase.id for phase in phases], NOW)
        count_again(tx, [batch.id])  # the moves were not made one by one
    return batch.id


def work_of(phase: PhaseRow) -> list[NewExecution]:
    count = PHASES[phase.phase_name]
    return [
        NewExecution(step_name=f"{phase.phase_name}-{n}", step_index=n, worker_id="w", timeout_sec=60)
        for n in range(count)
    ]


def advance(tx: Transaction, phases: list[PhaseRow], batch_id: int) -> None:
    """Let the first phases have ended, and the last be half done."""
    mine = step_executions.c
    number, is_last = mine.batch_member_id, mine.phase_execution_id == phases[-1].id
    ended = case((mine.id % FAILED_OF == 0, "failed"), else_="succeeded")
    done = {"attempt": 1, "params_json": '{"user": "%s"}' % ("y" * 150), "result_json": '{"id": "%s"}' % ("z" * 80)}
    tx.execute(update(step_executions).where(mine.batch_id == batch_id).values(status=ended, **done))
    for few, status, attempt in ((2, "pending", 0), (UNDER_WAY_OF, "dispatched", 1)):
        some = update(step_executions).where(is_last, number % few == 0)
        tx.execute(some.values(status=status, attempt=attempt))


def measured(store: Store, members: int, browser: Browser) -> Measured:
    batch = filled(store, members)
    with store.transaction() as tx:
        tx.execute(text("ANALYZE"))
    firsts = [seconds(lambda: read_matrix(store, batch)) for _ in range(ROUNDS)]
    before = read_matrix(store, batch)

    def looked_again() -> float:
        with store.transaction() as tx:
            count_again(tx, [batch])
        return seconds(lambda: read_matrix(store, batch, before))

    again = statistics.median(looked_again() for _ in range(ROUNDS))
    before = read_matrix(store, batch)
    nothing = statistics.median(seconds(lambda: read_matrix(store, batch, before)) for _ in range(ROUNDS))
    sent = len(Matrices(store, 1).shown(batch).result().packed)
    return Measured(members, statistics.median(firsts), again, nothing, sent, drawn(store, batch, browser))


def drawn(store: Store, batch: int, browser: Browser) -> list[float]:
    """Return how many milliseconds each of some visits takes from the bytes to the picture."""
    times = []
    with served(store, 1) as address:
        for _ in range(VISITS):
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.goto(f"{address}/batches/{batch}")
            page.wait_for_function("() => performance.getEntriesByName('matrix-drawn').length > 0", timeout=120_000)
            times.append(float(page.evaluate("performance.getEntriesByName('matrix-drawn')[0].duration")))
            page.close()
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", help="URL of an empty PostgreSQL database to use instead of starting one")
    parser.add_argument("--record", action="store_true", help="write the results to bench/RESULTS.md")
    options = parser.parse_args()
    lines, worst = [*HEADING], 0.0
    with databases(options.postgres) as urls, browsing() as browser:
        for name, url in urls.items():
            store = open_store(url)
            upgrade(store)
            for members in SIZES:
                found = measured(store, members, browser)
                worst = max(worst, statistics.median(found.drawn))
                lines.append(f"| {name} | {found.row} |")
                print(lines[-1], flush=True)
            store.close()
    if options.record:
        record("The matrix", ABOUT, "\n".join(lines))
    return 0 if worst <= ALLOWED_MS else 1


if __name__ == "__main__":
    sys.exit(main())
