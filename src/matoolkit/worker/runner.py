"""The loop of a worker: takes jobs in piles, and publishes each result before it settles the job (rule W1).

A worker that dies in between is given the job again, and answers again: functions are idempotent, and the second result
is recognised.
"""

import logging
import threading
from collections.abc import Callable, Sequence

from matoolkit.clock import Clock
from matoolkit.crashpoints import crash_point
from matoolkit.domain.messages import Message, WorkerJob, WorkerResult
from matoolkit.errors import MatoolkitError
from matoolkit.ids import result_id
from matoolkit.ports import Bus, Outgoing, Received, Subscription
from matoolkit.worker.functions import Registry

ANSWERED = crash_point("worker.answered")

MOST_AT_ONCE = 500
_IDLE_SECONDS = 1.0
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 15.0

log = logging.getLogger(__name__)


class Worker:
    """Does the jobs of one subscription."""

    def __init__(
        self,
        bus: Bus,
        jobs: Subscription,
        read: Callable[[Received], Message],
        functions: Registry,
        clock: Clock,
    ) -> None:
        self._bus = bus
        self._jobs = jobs
        self._read = read
        self._functions = functions
        self._clock = clock

    def run(self, stop: threading.Event) -> None:
        """Do jobs until told to stop; the pile at hand is finished first."""
        pause = _FIRST_PAUSE_SECONDS
        while not stop.is_set():
            try:
                if not self.turn():
                    self._bus.wait(self._jobs, _IDLE_SECONDS)
                pause = _FIRST_PAUSE_SECONDS
            except MatoolkitError as error:
                # What was received and not settled comes again once its lock has run out.
                log.warning("taking jobs pauses: %s", error.message)
                stop.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    def turn(self, most: int = MOST_AT_ONCE) -> int:
        """Do one pile of jobs and say how many there were."""
        pile = self._bus.receive(self._jobs, most)
        jobs = self._readable(pile)
        if jobs:
            results = [self._functions.result_of(job, self._clock) for _, job in jobs]
            self._bus.send([Outgoing(result_id(result.job_id), result) for result in results])
            ANSWERED.reached()
            self._bus.complete_now([received for received, _ in jobs])
            _log(jobs, results)
        return len(pile)

    def _readable(self, pile: Sequence[Received]) -> list[tuple[Received, WorkerJob]]:
        jobs: list[tuple[Received, WorkerJob]] = []
        for received in pile:
            try:
                message = self._read(received)
            except MatoolkitError as error:
                self._bus.dead_letter(received, "Unreadable", error.message)
                continue
            if isinstance(message, WorkerJob):
                jobs.append((received, message))
            else:
                self._bus.dead_letter(received, "Unreadable", "it is not a job")
        return jobs


def _log(jobs: Sequence[tuple[Received, WorkerJob]], results: Sequence[WorkerResult]) -> None:
    for (_, job), result in zip(jobs, results, strict=True):
        if result.error is not None:
            about = {"runbook": job.correlation.runbook_name, "batch": job.batch_id, "job": job.job_id}
            log.warning("%s failed: %s", job.function_name, result.error.message, extra=about)
