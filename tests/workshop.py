"""A worker on a real bus, functions that do what a test wants, and the results that come of it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import RESULTS_OF_ORCHESTRATOR, jobs_of_worker
from matoolkit.bus.wire import decode
from matoolkit.clock import Clock
from matoolkit.domain.messages import Message, WorkerJob, WorkerResult, correlation_of
from matoolkit.ids import Kind
from matoolkit.ports import Outgoing, Received
from matoolkit.settings import WorkerSettings
from matoolkit.store import Store
from matoolkit.store.deadletters import DeadLetterRow, dead_letters_page
from matoolkit.store.queue import queue_lengths
from matoolkit.system import build_worker
from matoolkit.worker import Context, FunctionFailed, Registry, Secret, Throttled, function
from matoolkit.worker.masking import Masking
from matoolkit.worker.runner import Runner
from tests.waiting import until

WORKER = "worker-01"


_QUIET = {"idle_timeout_seconds": 0, "max_parallelism": 2, "worker_announce": False}


class Gates:
    """Doors at which functions wait until a test opens them; `begun` are the users that stand there or went through."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._doors: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    def pass_through(self, user: str) -> None:
        door = self._door(user)
        self.begun.append(user)
        assert door.wait(30), f"nobody opened the door for {user}"

    def open(self, *users: str) -> None:
        for user in users:
            self._door(user).set()

    def _door(self, user: str) -> threading.Event:
        with self._lock:
            return self._doors.setdefault(user, threading.Event())


@dataclass
class Workshop:
    """A worker and all around it."""

    store: Store
    clock: Clock
    environ: dict[str, str] = field(default_factory=dict)
    gates: Gates = field(default_factory=Gates)
    calls: list[tuple[str, Any]] = field(default_factory=list)
    masking: Masking = field(default_factory=Masking)
    asked: int = 0

    def __post_init__(self) -> None:
        self.bus = SqlBus(self.store)
        self.registry = Registry(*self._functions())

    def runner(self, *, bus: Any = None, worker_id: str = WORKER, **settings: Any) -> Runner:
        known = WorkerSettings.model_validate({**_QUIET, **settings})
        return build_worker(
            bus or self.bus, known, worker_id, self.registry, self.masking, environ=self.environ, clock=self.clock
        )

    @contextmanager
    def running(self, runner: Runner) -> Iterator[threading.Event]:
        """Run a worker for as long as the context lasts; an error of it is one of the test."""
        stop = threading.Event()
        failures: list[BaseException] = []

        def run() -> None:
            try:
                runner.run(stop)
            except BaseException as failure:  # noqa: BLE001 - raised below
                failures.append(failure)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield stop
        finally:
            stop.set()
            thread.join(30)
            assert not thread.is_alive()
        if failures:
            raise failures[0]

    def send(self, name: str, *numbers: int, worker: str = WORKER, **parameters: Any) -> None:
        jobs = [job(number, name, worker, parameters or {"UserId": f"u{number}"}) for number in numbers]
        self.bus.send([Outgoing(one.job_id, one) for one in jobs])

    def results(self) -> dict[str, WorkerResult]:
        """Take the results that wait for the orchestrator, by their jobs."""
        return {one.job_id: one for one in self.answers() if isinstance(one, WorkerResult)}

    def answers(self) -> list[Message]:
        pile = self.bus.receive(RESULTS_OF_ORCHESTRATOR, 10_000)
        self.bus.complete_now(pile)
        return [read(one) for one in pile]

    def result_of(self, name: str, **parameters: Any) -> WorkerResult:
        """Let a worker do one job in this thread, and return its result."""
        self.asked += 1
        self.send(name, self.asked, **parameters)
        self.runner().turn()
        (result,) = self.results().values()
        return result

    def waiting(self, name: str = f"worker-{WORKER}") -> int:
        """Count the messages of a subscription, locked or not."""
        with self.store.reading() as tx:
            return sum(count for (_, found), count in queue_lengths(tx).items() if found == name)

    def deliveries(self) -> list[int]:
        """Say how often each job that is not settled was delivered."""
        with self.store.engine.connect() as connection:
            rows = connection.exec_driver_sql("SELECT delivery_count FROM bus_messages WHERE topic = 'worker-jobs'")
            return [row[0] for row in rows]

    def takeable(self) -> list[Received]:
        """Take what a second worker would get now."""
        return self.bus.receive(jobs_of_worker(WORKER), 1000)

    def dead_letters(self) -> list[DeadLetterRow]:
        with self.store.reading() as tx:
            return dead_letters_page(tx, limit=100)

    def until_begun(self, *users: str) -> None:
        until(lambda: set(users) <= set(self.gates.begun))

    def until_settled(self) -> None:
        until(lambda: self.waiting() == 0)

    def _functions(self) -> list[Any]:
        @function("Do-It")
        def do_it(context: Context, user_id: str) -> dict[str, Any]:
            """Do it at once."""
            self.calls.append(("Do-It", user_id))
            return {"Id": user_id}

        @function("Wait-ForDoor")
        def wait_for_door(context: Context, user_id: str) -> bool:
            """Wait at a door."""
            self.gates.pass_through(user_id)
            return True

        @function("Return-It")
        def return_it(context: Context, value: Any, password: Secret = "", token: Secret = "") -> Any:
            """Return what it was given."""
            self.calls.append(("Return-It", (value, password, token)))
            return value() if callable(value) else value

        @function("Show-Secret")
        def show_secret(context: Context, password: Secret, name: str = "") -> dict[str, Any]:
            """Be careless."""
            self.calls.append(("Show-Secret", (password, name)))
            return {"Said": f"it is {password}.", password: [password, {"deep": password}], "Name": name}

        return [do_it, wait_for_door, return_it, show_secret, raise_it]


@function("Raise-It")
def raise_it(context: Context, kind: str, password: Secret = "") -> None:
    """Fail in one of several ways."""
    match kind:
        case "failed":
            raise FunctionFailed(f"no such user {password}".strip(), "Request_ResourceNotFound", attempts=2)
        case "throttled":
            raise Throttled("come back later", attempts=6)
        case "exit":
            raise SystemExit(3)
        case "silent":
            raise LookupError
        case "unspeakable":
            raise Unspeakable
        case _:
            raise ValueError(f"{kind} {password}".strip())


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


def job(number: int, name: str, worker: str = WORKER, parameters: dict[str, Any] | None = None) -> WorkerJob:
    return WorkerJob(
        job_id_of(number),
        42,
        worker,
        name,
        parameters or {},
        correlation_of(number, Kind.STEP, "people", 3),
    )


def job_id_of(number: int) -> str:
    return f"step-{number}-attempt-1"


def read(received: Received) -> Message:
    return decode(received.subscription.topic, received.message_type, received.body)
