"""A state database that was restored to an earlier moment, beside a bus that was not: what docs/how-to/operate.md says.

The state is one file and the bus another, as Azure SQL and Service Bus are two services.
"""

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from matoolkit.bus.consumer import Consumer
from matoolkit.bus.relay import Relay
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR
from matoolkit.clock import VirtualClock
from matoolkit.domain.states import BatchStatus
from matoolkit.ids import parse_job_id
from matoolkit.orchestrator import Orchestrator
from matoolkit.scheduler.leasing import SchedulerLease
from matoolkit.scheduler.tick import Scheduler
from matoolkit.store import Store, open_store
from matoolkit.store.counting import differing_counts
from matoolkit.store.upgrade import upgrade
from tests.databases import NOON
from tests.scheduler.calendar import TICK, Calendar, People
from tests.stage import Silent, Stage

ROOT = Path(__file__).parents[2]
DAY = timedelta(days=1)
PEOPLE = [f"u{number}" for number in range(6)]
BACKUP = "backup.db"
# The second file is what is left of the topics when they are deleted and made again: nothing.
BUS, NEW_BUS = "bus.db", "new-bus.db"


class System:
    """Scheduler, orchestrator and a scripted worker between a state and a bus that are apart."""

    def __init__(self, folder: Path, clock: VirtualClock, people: People, bus: str = BUS) -> None:
        self._folder = folder
        self._clock = clock
        self._stores = [self._opened(name) for name in ("state.db", bus)]
        state, far = self._stores
        relay = Relay(state, SqlBus(far))
        self.calendar = Calendar(state, clock, people)
        lease = SchedulerLease(state, "one", timedelta(seconds=90))
        self.calendar.scheduler = Scheduler(state, relay, lambda _: people, clock, lease, TICK)
        self.stage = Stage(state, clock)
        self.stage.bus = SqlBus(far)
        self.stage.orchestrator = Orchestrator(state, relay)
        handle = self.stage.orchestrator.handle
        self.stage.events = Consumer(state, self.stage.bus, EVENTS_OF_ORCHESTRATOR, handle)
        self.stage.results = Consumer(state, self.stage.bus, RESULTS_OF_ORCHESTRATOR, handle)
        self.relay = relay

    def _opened(self, name: str) -> Store:
        store = open_store(f"sqlite:///{self._folder / name}", clock=self._clock)
        upgrade(store)
        return store

    def pass_time(self, duration: timedelta) -> None:
        self.calendar.tick(duration)
        self.go_on()
        self.calendar.scheduler.sweep()
        self.stage.orchestrator.sweep()
        self.relay.sweep()
        self.go_on()

    def go_on(self) -> None:
        self.stage.run()

    def back_up(self) -> None:
        with closing(sqlite3.connect(self._folder / "state.db")) as state:
            state.execute(f"VACUUM INTO '{self._folder / BACKUP}'")

    def stop(self) -> None:
        for store in self._stores:
            store.close()

    def states(self) -> Counter[str]:
        return Counter(str(step.status) for step in self.stage.steps(self.calendar.batch(NOON + 10 * DAY)))

    def outbox(self) -> int:
        with self._stores[0].reading() as tx:
            return int(tx.values(text("SELECT COUNT(*) FROM outbox"))[0])


class Restoring:
    """Starts systems one after the other in one folder, and restores the backup in between."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = VirtualClock(NOON)
        self.people = People()
        self.running: System | None = None

    def start(self, bus: str = BUS) -> System:
        self.running = System(self.folder, self.clock, self.people, bus)
        return self.running

    def restore(self) -> None:
        """Stop everything and put the backup where the state was."""
        assert self.running is not None
        self.running.stop()
        for file in self.folder.glob("state.db*"):
            file.unlink()
        (self.folder / BACKUP).rename(self.folder / "state.db")

    def run_the_sql_of_the_page(self) -> None:
        page = (ROOT / "docs" / "how-to" / "operate.md").read_text(encoding="utf-8")
        (script,) = re.findall(r"```sql\n\s*(UPDATE step_executions.*?)```", page, re.DOTALL)
        with closing(sqlite3.connect(self.folder / "state.db")) as state:
            state.executescript(script)


@pytest.fixture
def restoring(tmp_path: Path) -> Iterator[Restoring]:
    made = Restoring(tmp_path)
    yield made
    if made.running:
        made.running.stop()


def under_way(restoring: Restoring) -> System:
    """Let a wave begin: two people have done their first step, and the jobs of four are out. Then back up."""
    system = restoring.start()
    system.calendar.in_source(*PEOPLE)
    system.calendar.publish()
    system.stage.answers["Set-EntraUserEnabled"] = lambda job: (
        None if job.parameters["UserId"] in PEOPLE[:2] else Silent()
    )
    system.pass_time(timedelta())
    system.pass_time(3 * DAY)
    assert system.states() == {"succeeded": 2, "dispatched": 4}
    system.back_up()
    return system


def lost_future(system: System) -> None:
    """Let the wave go on after the backup: somebody joins, the next phase begins, and its results are not read."""
    for job in [job for job in system.stage.jobs if job.parameters["UserId"] not in PEOPLE[:2]]:
        system.stage.answer(job)
    system.stage.answers["Set-EntraUserEnabled"] = None
    system.calendar.in_source("late")
    system.pass_time(DAY)
    system.calendar.tick(timedelta(days=6) - timedelta(minutes=30))
    system.stage.handle()
    assert system.stage.work() == 7, "the jobs of the phase `warn` are done"
    assert system.states()["dispatched"] == 7, "and nobody has read their results"


def test_after_a_restore_as_the_page_says_nothing_is_lost_and_work_is_repeated(restoring: Restoring) -> None:
    system = under_way(restoring)
    lost_future(system)
    restoring.restore()
    restoring.run_the_sql_of_the_page()
    system = restoring.start(NEW_BUS)
    for _ in range(4):
        system.pass_time(timedelta(minutes=5))
    system.pass_time(timedelta(hours=2))
    system.pass_time(timedelta(minutes=5))
    batch = system.calendar.batch(NOON + 10 * DAY)
    assert system.stage.reload(batch).status is BatchStatus.COMPLETED
    steps = system.stage.steps(batch)
    assert {str(step.status) for step in steps} == {"succeeded"}
    assert len(steps) == 7 * 3, "the late joiner was found again"
    done = Counter(ref.execution_id for job in system.stage.jobs if (ref := parse_job_id(job.job_id)))
    assert set(done.values()) == {1}, "nothing is done twice after the restore"
    # Who had answered before the backup is not asked again; what came after it is repeated.
    kept = {step.batch_member_id for step in steps if step.id not in done}
    assert kept == {system.stage.member(batch, key).id for key in PEOPLE[:2]}
    assert len(done) == len(steps) - 2
    assert {step.retry_count for step in steps} == {0}, "no retry is used up"
    assert system.outbox() == 0
    with system.stage.store.reading() as tx:
        assert differing_counts(tx, [batch.id]) == []


def test_a_phase_whose_announcement_was_read_in_the_lost_time_begins_again(restoring: Restoring) -> None:
    system = restoring.start()
    system.calendar.in_source(*PEOPLE)
    system.calendar.publish()
    system.pass_time(timedelta())
    system.calendar.tick(3 * DAY)
    system.back_up()
    assert system.states() == {}, "the phase is announced, and nobody has steps yet"
    system.pass_time(timedelta(minutes=5))
    assert system.states() == {"succeeded": 6}
    restoring.restore()
    restoring.run_the_sql_of_the_page()
    system = restoring.start(NEW_BUS)
    for _ in range(2):
        system.pass_time(timedelta(minutes=5))
    assert system.states() == {"succeeded": 6}


def test_where_the_bus_is_in_the_state_both_are_restored_as_one_picture(restoring: Restoring) -> None:
    system = restoring.start("state.db")
    system.calendar.in_source(*PEOPLE)
    system.calendar.publish()
    system.calendar.tick()
    system.calendar.tick(3 * DAY)
    system.stage.handle()
    system.back_up()
    assert system.stage.work() == 6, "the jobs were on the bus, and are done after the backup"
    system.stage.handle()
    assert system.states() == {"succeeded": 6}
    restoring.restore()
    system = restoring.start("state.db")
    assert system.states() == {"dispatched": 6}
    # The lease of the scheduler before has ended by then.
    for duration in (timedelta(minutes=5), 7 * DAY, DAY):
        system.pass_time(duration)
    assert set(system.states()) == {"succeeded"}
    assert system.stage.reload(system.calendar.batch(NOON + 10 * DAY)).status is BatchStatus.COMPLETED


def test_a_bus_that_is_gone_alone_loses_nothing(restoring: Restoring) -> None:
    system = under_way(restoring)
    system.stop()
    restoring.run_the_sql_of_the_page()
    system = restoring.start(NEW_BUS)
    # The lease of the scheduler before has ended by then.
    for duration in (timedelta(minutes=5), 7 * DAY, DAY):
        system.pass_time(duration)
    assert set(system.states()) == {"succeeded"}
    assert len(system.stage.jobs) == 4 + 6 * 2, "only what was out is sent again"


def test_without_the_sql_jobs_that_were_out_wait_for_their_time_limit(restoring: Restoring) -> None:
    system = under_way(restoring)
    lost_future(system)
    restoring.restore()
    system = restoring.start(NEW_BUS)
    batch = system.calendar.batch(NOON + 10 * DAY)
    # They were sent more than a day before: no retry is left, so they fail.
    system.pass_time(timedelta(minutes=5))
    assert {member.member_key for member in system.stage.members(batch) if member.status == "failed"} == set(PEOPLE[2:])


def test_a_bus_that_is_not_emptied_may_give_a_result_to_another_person(restoring: Restoring) -> None:
    """Numbers are given out again after a restore, so the page has the bus emptied."""
    system = restoring.start()
    system.calendar.publish()
    system.pass_time(timedelta())
    system.back_up()
    system.calendar.in_source("ann")
    system.calendar.tick(3 * DAY)
    system.stage.handle()
    (job,) = system.stage.take_jobs()
    restoring.restore()
    restoring.people.rows.clear()
    system = restoring.start(NEW_BUS)
    system.calendar.in_source("bob", at=NOON + 10 * DAY)
    system.calendar.tick(timedelta(minutes=5))
    system.stage.handle()
    (other,) = system.stage.take_jobs()
    assert other.job_id == job.job_id
    assert (job.parameters["UserId"], other.parameters["UserId"]) == ("ann", "bob")
    system.stage.answer(job)
    system.stage.handle()
    assert system.stage.states(system.calendar.batch(NOON + 10 * DAY), "bob")["prepare-it"] == "succeeded"
