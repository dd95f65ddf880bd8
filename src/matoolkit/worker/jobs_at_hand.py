"""The jobs that a worker has at hand: waiting for a thread, running, or done and not yet settled.

Threads take jobs and put results; the fetching thread asks how much room there is.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from matoolkit.clock import Clock
from matoolkit.domain.messages import WorkerJob, WorkerResult
from matoolkit.ports import Received

# Jobs that a thread will begin within this time are fetched ahead, so that no thread waits for the bus.
_AHEAD_SECONDS = 0.05
_MOST_AHEAD = 500
_MOST_UNSETTLED = 1000
# How long a result waits for others while jobs run: a pile costs the bus little more than one message.
_GATHERING_SECONDS = 0.02
# A job that no thread has begun after this time was fetched too early, and is given back.
_LONGEST_WAIT_SECONDS = 2.0
# How quickly the time of a slow job loses weight: half of it after fourteen other jobs.
_FORGETTING = 0.95


@dataclass(slots=True, eq=False)
class Task:
    """A job at hand, the message that brought it, and its result and span once there are such."""

    received: Received
    job: WorkerJob
    result: WorkerResult | None = None
    traceparent: str | None = None
    put_at: float = 0.0
    is_begun: bool = False


class JobsAtHand:
    """The jobs at hand, safe to use from all threads."""

    def __init__(self, threads: int, clock: Clock) -> None:
        self._threads = threads
        self._clock = clock
        self._changed = threading.Condition()
        self._tasks: dict[str, Task] = {}
        self._waiting: SimpleQueue[Task | None] = SimpleQueue()
        self._done: SimpleQueue[Task] = SimpleQueue()
        self._unfinished = 0
        # Nothing is fetched ahead before the first job has shown how long jobs take.
        self._slowest = float("inf")
        self._used_at = clock.monotonic()

    def put(self, tasks: Sequence[Task]) -> None:
        """Take in jobs; a job that is already here goes on under the new lock."""
        with self._changed:
            self._used_at = self._clock.monotonic()
            for task in tasks:
                if (known := self._tasks.get(task.job.job_id)) is not None:
                    known.received = task.received
                    continue
                self._tasks[task.job.job_id] = task
                task.put_at = self._used_at
                self._unfinished += 1
                self._waiting.put(task)

    def take(self) -> Task | None:
        """Wait for a job to run; nothing if there will be none."""
        task = self._waiting.get()
        if task is not None:
            task.is_begun = True
        return task

    def finish(self, task: Task, result: WorkerResult, seconds: float) -> None:
        """Note a job's result."""
        task.result = result
        with self._changed:
            self._done.put(task)
            self._unfinished -= 1
            known = 0.0 if self._slowest == float("inf") else self._slowest * _FORGETTING
            self._slowest = max(seconds, known)
            self._changed.notify_all()

    def finished(self, timeout: float, most: int) -> list[Task]:
        """Wait for jobs to be done and return all that are; while others run, wait a moment for theirs."""
        done: list[Task] = []
        try:
            done.append(self._done.get(timeout=timeout))
            until = self._clock.monotonic() + _GATHERING_SECONDS
            while len(done) < most:
                left = until - self._clock.monotonic()
                done.append(self._done.get(timeout=left) if left > 0 and self._runs() else self._done.get_nowait())
        except Empty:
            pass
        return done

    def _runs(self) -> bool:
        with self._changed:
            return self._unfinished > 0

    def settle(self, tasks: Sequence[Task]) -> None:
        """Forget jobs that are settled."""
        if not tasks:
            return
        with self._changed:
            self._used_at = self._clock.monotonic()
            for task in tasks:
                self._tasks.pop(task.job.job_id, None)
            self._changed.notify_all()

    def room(self) -> int:
        """Return for how many jobs a thread is free, or will be when they arrive."""
        with self._changed:
            if len(self._tasks) - self._unfinished >= _MOST_UNSETTLED:
                return 0
            return max(0, self._threads + self._ahead() - self._unfinished)

    def wait_for_room(self, timeout: float) -> int:
        """Wait until there is room and return how much; 0 if there is none in time.

        While enough is fetched ahead, wait for room for several jobs: a pile costs the bus little more than one job.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.room() > self._ahead() // 2, timeout)
            return self.room()

    def _ahead(self) -> int:
        return min(int(self._threads * _AHEAD_SECONDS / max(self._slowest, 1e-6)), _MOST_AHEAD)

    def wait_until_clear(self, timeout: float) -> bool:
        """Wait until nothing waits and nothing runs."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._unfinished, timeout)

    def has(self, job_id: str) -> bool:
        """Whether a job is at hand."""
        return job_id in self._tasks

    def unsettled(self) -> list[Task]:
        """Return all jobs that are not settled."""
        with self._changed:
            return list(self._tasks.values())

    def withdraw(self) -> list[Task]:
        """Take back the jobs that no thread has begun."""
        withdrawn: list[Task] = []
        try:
            while True:
                task = self._waiting.get_nowait()
                if task is not None:
                    withdrawn.append(task)
        except Empty:
            pass
        with self._changed:
            self._unfinished -= len(withdrawn)
            for task in withdrawn:
                self._tasks.pop(task.job.job_id, None)
            self._changed.notify_all()
        return withdrawn

    def withdraw_early(self) -> list[Task]:
        """Take back jobs that were fetched ahead if threads have become slower."""
        with self._changed:
            too_old = self._clock.monotonic() - _LONGEST_WAIT_SECONDS
            if all(task.is_begun or task.put_at > too_old for task in self._tasks.values()):
                return []
            self._slowest = max(self._slowest, _LONGEST_WAIT_SECONDS)
        return self.withdraw()

    def close(self) -> None:
        """Let every thread that waits for a job go."""
        for _ in range(self._threads):
            self._waiting.put(None)

    def idle_seconds(self) -> float:
        """Say for how long there has been nothing at hand."""
        with self._changed:
            return 0.0 if self._tasks else self._clock.monotonic() - self._used_at
