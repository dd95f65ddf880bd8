"""The worker at work: fetches jobs, runs them in threads, publishes each result, then settles the job (rule W1).

One thread fetches jobs while there is room. Another publishes results, settles jobs and renews locks; while jobs run it
waits a moment, so that several results leave together. A worker that dies leaves its jobs locked: the bus delivers them
again, functions are idempotent, and a second result is recognised by its id.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matoolkit.crashpoints import crash_point
from matoolkit.domain.delivery import SUSPICIOUS_DELIVERIES
from matoolkit.domain.messages import Message, WorkerHello, WorkerJob, WorkerResult
from matoolkit.errors import MatoolkitError, StoreError
from matoolkit.ids import worker_hello_id
from matoolkit.outages import Outage
from matoolkit.ports import Bus, Outgoing, Received, Subscription
from matoolkit.worker.execution import Execution
from matoolkit.worker.jobs_at_hand import JobsAtHand, Task
from matoolkit.worker.settlement import Settlement
from matoolkit.worker.watching import note_result, span_of_job

CALLED = crash_point("worker.called")

MOST_AT_ONCE = 500
_LOOK_SECONDS = 0.5
_LONGEST_HANG_SECONDS = 300.0
_FIRST_SIGN_IN_SECONDS = 5.0
_LONGEST_SIGN_IN_SECONDS = 30.0
_LONGEST_SILENCE_SECONDS = 60.0

log = logging.getLogger(__name__)

Read = Callable[[Received], Message]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a worker does at once, when it stops, and whether it announces its functions; idle time 0 is never."""

    threads: int = 4
    idle_seconds: float = 0
    grace_seconds: float = 30
    renew_seconds: float = 20
    announces: bool = False


class Runner:
    """Does the jobs of one subscription."""

    def __init__(
        self,
        bus: Bus,
        jobs: Subscription,
        read: Read,
        execution: Execution,
        limits: Limits,
        let_go: Callable[[], None] = lambda: None,
        sign_in: Callable[[], None] = lambda: None,
    ) -> None:
        self._bus = bus
        self._let_go = let_go
        self._sign_in = sign_in
        self._jobs = jobs
        self._read = read
        self._execution = execution
        self._limits = limits
        self._clock = execution.clock
        self._at_hand = JobsAtHand(limits.threads, self._clock)
        # Not every bus may be used by two threads at once, and on SQLite the second would wait long.
        self._bus_lock = threading.Lock()
        self._settlement = Settlement(bus, self._bus_lock, self._clock, limits.renew_seconds)
        # A job that may have killed its process before runs alone, so that no other job dies with it.
        self._suspects: tuple[Task, ...] = ()
        self._halt = threading.Event()
        self._failure: BaseException | None = None
        self._signing_in = Outage(
            "signing in",
            log,
            self._clock,
            first_seconds=_FIRST_SIGN_IN_SECONDS,
            longest_seconds=_LONGEST_SIGN_IN_SECONDS,
        )
        self._announcing = Outage("announcing functions", log, self._clock, longest_seconds=_LONGEST_SILENCE_SECONDS)
        self._announce_at = None if not limits.announces else self._clock.monotonic()
        self._tended_at = self._clock.monotonic()
        self.is_ready = False

    @property
    def is_alive(self) -> bool:
        """Whether the worker's threads are all well, and none hangs."""
        return self._failure is None and self._clock.monotonic() - self._tended_at < _LONGEST_HANG_SECONDS

    def announce(self) -> None:
        """Announce the functions of this worker (rule W6)."""
        worker_id = self._execution.worker_id
        hello = WorkerHello(worker_id, self._execution.registry.catalogue())
        with self._bus_lock:
            self._bus.send([Outgoing(worker_hello_id(worker_id, self._clock.now()), hello)])

    def run(self, stop: threading.Event) -> None:
        """Do jobs until told to stop or idle for too long; then end what runs and give the rest back."""
        # Daemon threads: a function that never returns must not keep the process alive.
        for number in range(self._limits.threads):
            threading.Thread(target=self._in_thread(self._work), name=f"job-{number}", daemon=True).start()
        fetcher = threading.Thread(target=self._in_thread(lambda: self._fetch(stop)), name="fetch", daemon=True)
        fetcher.start()
        try:
            while fetcher.is_alive() and self._failure is None:
                self._tend()
            self.is_ready = False
            if self._failure is not None:
                raise self._failure
            self._drain()
        finally:
            self._halt.set()
            self._at_hand.close()

    def turn(self, most: int = MOST_AT_ONCE) -> int:
        """Do one pile of jobs in this thread and say how many there were."""
        pile = self._bus.receive(self._jobs, most)
        tasks = self._readable(pile)
        for task in tasks:
            task.result = self._do(task)
        self._settlement.settle(tasks)
        return len(pile)

    def close(self) -> None:
        """Let go of what the functions used; a worker that is closed does no more jobs."""
        self._let_go()

    def _in_thread(self, work: Callable[[], None]) -> Callable[[], None]:
        def guarded() -> None:
            try:
                work()
            except BaseException as failure:  # noqa: BLE001 - it is raised again where the worker runs
                self._failure = failure
                self._halt.set()

        return guarded

    def _work(self) -> None:
        while (task := self._at_hand.take()) is not None:
            began = self._clock.monotonic()
            result = self._do(task)
            self._at_hand.finish(task, result, self._clock.monotonic() - began)

    def _do(self, task: Task) -> WorkerResult:
        with span_of_job(self._execution, task.job, task.received.traceparent) as span:
            result = self._execution.result_of(task.job)
            note_result(span, self._execution, task.job, result)
            task.traceparent = span.traceparent
        CALLED.reached()
        return result

    def _fetch(self, stop: threading.Event) -> None:
        trouble = Outage("taking jobs", log, self._clock)
        while not (stop.is_set() or self._halt.is_set() or self._is_idle()):
            if pause := self._sign_in_pause():
                stop.wait(pause)
                continue
            try:
                self._fetch_once(stop)
                trouble.worked()
            except MatoolkitError as error:
                if not _passes(error):
                    raise
                self.is_ready = False
                stop.wait(trouble.failed(error))

    def _sign_in_pause(self) -> float:
        """Sign in again where needed, and return how long to wait before the next try; 0 if it worked.

        A worker that cannot sign in would fail every job that it takes (rule W1).
        """
        try:
            self._sign_in()
        except Exception as fault:  # noqa: BLE001 - whatever a library raises, no job is taken
            self.is_ready = False
            return self._signing_in.failed(fault)
        self._signing_in.worked()
        return 0.0

    def _announce_when_due(self) -> None:
        """Announce functions until it worked once; jobs do not wait for it, because they come over another topic."""
        if self._announce_at is None or self._clock.monotonic() < self._announce_at:
            return
        try:
            self.announce()
        except MatoolkitError as error:
            self._announce_at = self._clock.monotonic() + self._announcing.failed(error)
        else:
            self._announcing.worked()
            self._announce_at = None

    def _fetch_once(self, stop: threading.Event) -> None:
        self._announce_when_due()
        if self._suspects:
            if self._at_hand.wait_until_clear(_LOOK_SECONDS):
                suspect, *others = self._suspects
                self._at_hand.put([suspect])
                self._suspects = tuple(others)
            return
        room = self._at_hand.wait_for_room(_LOOK_SECONDS)
        if not room or stop.is_set():
            return
        with self._bus_lock:
            pile = self._bus.receive(self._jobs, room)
            tasks = self._readable(pile)
        self.is_ready = True
        if not pile:
            self._bus.wait(self._jobs, _LOOK_SECONDS)
            return
        self._suspects = tuple(task for task in tasks if self._is_suspect(task))
        self._at_hand.put([task for task in tasks if task not in self._suspects])

    def _readable(self, pile: Sequence[Received]) -> list[Task]:
        """Read a pile; a message that is not a job becomes a dead letter at once."""
        tasks: list[Task] = []
        for received in pile:
            try:
                message = self._read(received)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with it, it stops no other job
                log.error("message %s is put aside: %s", received.message_id, error)  # noqa: TRY400
                self._bus.dead_letter(received, "Unreadable", f"{type(error).__name__}: {error}")
                continue
            if isinstance(message, WorkerJob):
                tasks.append(Task(received, message))
            else:
                self._bus.dead_letter(received, "Unreadable", "it is not a job")
        return tasks

    def _tend(self) -> None:
        """Settle finished jobs and renew the locks of the others; while the bus is away, both wait."""
        done = self._at_hand.finished(_LOOK_SECONDS, MOST_AT_ONCE)
        self._at_hand.settle(self._settlement.try_to_settle(done))
        self._settlement.give_back(self._at_hand.withdraw_early())
        self._settlement.renew_when_due([*self._at_hand.unsettled(), *self._suspects])
        self._tended_at = self._clock.monotonic()

    def _drain(self) -> None:
        """Give back what has not begun, wait a while for what runs, and give that back too if it does not end."""
        self._settlement.give_back([*self._at_hand.withdraw(), *self._suspects])
        ends_at = self._clock.monotonic() + self._limits.grace_seconds
        while self._at_hand.unsettled() and self._clock.monotonic() < ends_at and self._failure is None:
            self._tend()
        self._settlement.give_back(self._at_hand.unsettled())
        if self._failure is not None:
            raise self._failure

    def _is_suspect(self, task: Task) -> bool:
        """Whether a job may have killed its process each time it came; a job that runs here only lost its lock."""
        return task.received.delivery_count >= SUSPICIOUS_DELIVERIES and not self._at_hand.has(task.job.job_id)

    def _is_idle(self) -> bool:
        limit = self._limits.idle_seconds
        # A worker that cannot fetch does not know whether there are jobs, so it is not idle.
        if not limit or not self.is_ready or self._suspects or self._at_hand.idle_seconds() < limit:
            return False
        log.info("no job for %d seconds: the worker stops", limit)
        return True


def _passes(error: MatoolkitError) -> bool:
    """Whether receiving may work again later, and no message is to blame."""
    return error.transient or isinstance(error, StoreError)
