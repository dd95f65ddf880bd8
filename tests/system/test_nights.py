"""M6: a night in which Azure SQL fails leaves no dead letter, no failed step and nothing undone or done twice.

The texts are Azure SQL's, in the form in which the driver says them, and are told apart as they are there. The database
below is another one: what counts is where a transaction breaks, not who runs it.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import Enum, auto
from typing import Any

import pytest
from httpx import Client
from mssql_python.exceptions import raise_exception
from sqlalchemy import event, text

from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import jobs_of_worker
from matoolkit.bus.wire import decode
from matoolkit.clock import VirtualClock
from matoolkit.domain.messages import ResultStatus, WorkerJob, WorkerResult
from matoolkit.domain.states import BatchStatus
from matoolkit.doors.identity import LocalOnly
from matoolkit.doors.services import Services
from matoolkit.errors import StoreError
from matoolkit.ids import result_id
from matoolkit.ports import Outgoing, Received
from matoolkit.store import Store
from matoolkit.store.dialect.mssql import SqlServer
from tests.scheduler.calendar import Calendar, runbook, step
from tests.servers.api import serving
from tests.stage import SOURCE, WORKER, Stage

pytestmark = pytest.mark.on("sqlite")

Texts = tuple[tuple[str, str], ...]

SERVER = "[Microsoft][ODBC Driver 18 for SQL Server][SQL Server]"
TEXTS = (
    ("42000", f"{SERVER}The service has encountered an error processing your request. Error code 40166."),
    ("42000", f"{SERVER}Database 'state' on server 'contoso' is not currently available. Please retry later."),
    ("42000", f"{SERVER}The service is currently busy. Retry the request after 10 seconds. Incident ID: 7."),
    ("42000", f"{SERVER}Resource ID: 1. The request limit for the database is 60 and has been reached."),
    ("42000", f"{SERVER}Cannot process request. Not enough resources to process request."),
    ("40001", f"{SERVER}Transaction (Process ID 52) was deadlocked on lock resources with another process."),
    ("08S01", "[Microsoft][ODBC Driver 18 for SQL Server]Communication link failure"),
)
REFUSED = (("28000", f"{SERVER}Login failed for user '<token-identified principal>'."),)
TURN = timedelta(minutes=45)
TURNS = 16
MEMBERS, UPLOADED = 8, ("p1", "p2", "p3")
# All but the last are due in the night, which begins twelve hours before T.
PHASES = ("T-11h", "T-8h", "T-5h", "T-2h", "T-0")
MANUAL = f"""\
name: by-hand
{SOURCE}phases:
  - name: only
    offset: T-0
    steps:
      - {{name: one, worker_id: {WORKER}, function: Custom-One}}
"""


class Where(Enum):
    """Where a transaction breaks."""

    BEGIN = auto()
    MIDDLE = auto()
    COMMIT = auto()  # and is undone
    COMMITTED = auto()  # but nobody is told


class Weather:
    """Breaks transactions of a store, all of them or some, at certain places."""

    def __init__(self, store: Store, seed: int) -> None:
        self._store = store
        self._random = random.Random(seed)
        self._places: tuple[Where, ...] = ()
        self._texts: Texts = TEXTS
        self._share = 0.0
        self._left = 0
        self.broken: Counter[Where] = Counter()
        dialect = store.engine.dialect
        self._commit, self._rollback = dialect.do_commit, dialect.do_rollback
        event.listen(store.engine, "begin", self._begin)
        store.watchers.append(self._statement)
        dialect.do_commit = self._committing  # type: ignore[method-assign,assignment]

    @contextmanager
    def bad(self, *places: Where, share: float = 1.0, texts: Texts = TEXTS) -> Iterator[None]:
        self._places, self._share, self._texts = places, share, texts
        yield
        self._places = ()

    def _begin(self, _connection: Any) -> None:
        self._left = self._random.randint(1, 6)
        self._break(Where.BEGIN)

    def _statement(self, *_: Any) -> None:
        self._left -= 1
        if self._left == 0:
            self._break(Where.MIDDLE)

    def _committing(self, connection: Any) -> None:
        if self._is_time(Where.COMMIT):
            self._rollback(connection)
            self._raise(Where.COMMIT)
        self._commit(connection)
        self._break(Where.COMMITTED)

    def _break(self, where: Where) -> None:
        if self._is_time(where):
            self._raise(where)

    def _is_time(self, where: Where) -> bool:
        return where in self._places and self._random.random() < self._share

    def _raise(self, where: Where) -> None:
        self.broken[where] += 1
        try:
            raise_exception(*self._random.choice(self._texts))
        except Exception as said:  # noqa: BLE001 - the driver's own classes
            raise SqlServer().error_for(said)(f"SQL Server: {said}") from None


class Hand:
    """A worker that answers every job and settles it, and keeps what it could not settle."""

    def __init__(self, store: Store, clock: VirtualClock) -> None:
        self._bus = SqlBus(store)
        self._clock = clock
        self._pile: list[Received] = []
        self.done: Counter[str] = Counter()

    def turn(self) -> int:
        self._pile = self._bus.renew(self._pile) if self._pile else self._bus.receive(jobs_of_worker(WORKER), 100)
        answers = []
        for received in self._pile:
            job = decode(received.subscription.topic, received.message_type, received.body)
            assert isinstance(job, WorkerJob)
            self.done[job.job_id] += 1
            result = WorkerResult(job.job_id, ResultStatus.SUCCESS, self._clock.now())
            answers.append(Outgoing(result_id(job.job_id), result))
        if answers:
            self._bus.answer(answers, self._pile)
        self._pile = []
        return len(answers)


class Person:
    """Somebody who asks for three things, one after the other, with a key each, until each is done."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.batch = 0
        self._wishes = [self._publish, self._make, self._advance]

    def turn(self) -> int:
        if not self._wishes:
            return 0
        answer = self._wishes[0]()
        assert answer.status_code in (200, 201, 503), answer.text
        if answer.status_code == 503:
            assert answer.json()["code"] in ("DB503", "DB504", "DB401"), answer.text
            return 0
        self._wishes.pop(0)
        self.batch = answer.json().get("batchId", self.batch) or self.batch
        return 1

    def look(self) -> None:
        assert self._client.get("/api/batches").status_code in (200, 503)

    @property
    def is_content(self) -> bool:
        return not self._wishes

    def _publish(self) -> Any:
        return self._client.post("/api/runbooks", json={"yamlContent": MANUAL}, headers={"Idempotency-Key": "publish"})

    def _make(self) -> Any:
        rows = "Email,Name,Start\r\n" + "".join(f"{key},{key},\r\n" for key in UPLOADED)
        files = {"file": ("people.csv", rows.encode(), "text/csv")}
        form = {"runbookName": "by-hand"}
        return self._client.post("/api/batches", data=form, files=files, headers={"Idempotency-Key": "make"})

    def _advance(self) -> Any:
        return self._client.post(f"/api/batches/{self.batch}/advance", json={}, headers={"Idempotency-Key": "advance"})


class System:
    """All parts on one store, each of which tries again as its loop does."""

    def __init__(self, store: Store, clock: VirtualClock, client: Client) -> None:
        self.calendar, self.stage = Calendar(store, clock), Stage(store, clock)
        self.hand, self.person = Hand(store, clock), Person(client)
        self.clock = clock

    def turn(self, duration: timedelta = TURN) -> None:
        self.clock.advance(duration)
        self._try(self.calendar.scheduler.tick)
        self._try(self.calendar.scheduler.sweep)
        self._try(self.stage.bus.sweep)
        self.stage.orchestrator.sweep()
        self.person.look()
        moved = 1
        while moved:
            turns = (self.stage.events.turn, self.stage.results.turn, self.hand.turn, self.person.turn)
            moved = sum(self._try(turn) for turn in turns)

    def _try(self, work: Callable[[], Any]) -> int:
        """Do something, and say whether it did anything; the loops of the services try again as well."""
        try:
            return int(bool(work()))
        except StoreError as error:
            if not error.spares_work:
                raise
            return 0


@pytest.fixture
def system(store: Store, clock: VirtualClock) -> Iterator[System]:
    services = Services(store, SqlBus(store), decode, lambda _: None, clock, LocalOnly())  # type: ignore[arg-type,return-value]
    with serving(services) as address, Client(base_url=address, timeout=60) as client:
        yield System(store, clock, client)


def settle(system: System) -> None:
    """Let the morning come, and the days until the wave has ended."""
    for _ in range(3):
        system.turn()
    system.turn(timedelta(days=1))
    system.turn()


def nothing_is_lost(system: System, store: Store) -> None:
    assert system.person.is_content
    with store.reading() as tx:
        assert tx.values(text("SELECT count(*) FROM dead_letters")) == [0]
        assert Counter(tx.values(text("SELECT status FROM step_executions"))) == {
            "succeeded": MEMBERS * len(PHASES) + len(UPLOADED)
        }
        assert tx.values(text("SELECT status FROM batches")) == [BatchStatus.COMPLETED] * 2
        assert tx.values(text("SELECT count(*) FROM bus_messages")) == [0]
        actions = tx.values(text("SELECT action FROM audit_log WHERE subject_type = 'batch'"))
    assert len(actions) == len(set(actions)), "something was done twice"


@pytest.fixture
def weather(system: System, store: Store) -> Weather:
    """The evening before, with a wave of which most phases are due in the night."""
    phases = [{"name": offset, "offset": offset, "steps": [step("one")]} for offset in PHASES]
    system.calendar.publish(runbook(phases=phases))
    system.calendar.in_source(*(f"u{number}" for number in range(MEMBERS)))
    system.calendar.tick(timedelta(days=9, hours=12))
    return Weather(store, seed=7)


@pytest.mark.parametrize(
    ("places", "share"),
    [
        ([Where.BEGIN], 1.0),
        ([Where.MIDDLE], 1.0),
        ([Where.COMMIT], 1.0),
        ([Where.COMMITTED], 1.0),
        (list(Where), 0.3),
        (list(Where), 0.1),
    ],
    ids=["begin", "middle", "commit", "committed", "often", "sometimes"],
)
def test_m6_a_night_of_40197_leaves_no_dead_letter(
    system: System, store: Store, weather: Weather, places: list[Where], share: float
) -> None:
    # A phase is announced before all goes wrong, so that there is something to take.
    system.calendar.tick(timedelta(hours=1))
    with weather.bad(*places, share=share):
        for _ in range(TURNS):
            system.turn()
    assert all(weather.broken[place] for place in places)
    settle(system)
    nothing_is_lost(system, store)


def test_m6_a_night_without_a_sign_in_leaves_no_dead_letter(system: System, store: Store, weather: Weather) -> None:
    system.calendar.tick(timedelta(hours=1))
    with weather.bad(Where.BEGIN, texts=REFUSED):
        for _ in range(TURNS):
            system.turn()
    assert weather.broken[Where.BEGIN] > TURNS
    settle(system)
    nothing_is_lost(system, store)
