"""How a job ends on the bus: its result is published, then it is settled, in this order (rule W1).

If the bus is away, no job fails: results are kept and sent when it is back.
"""

import logging
import threading
from collections.abc import Sequence

from matoolkit.clock import Clock
from matoolkit.domain.messages import ResultStatus, WorkerJob, WorkerResult
from matoolkit.errors import MatoolkitError, MessageRefused, MessageTooLarge, StoreError, UnwritableMessage
from matoolkit.ids import result_id
from matoolkit.outages import FIRST_PAUSE_SECONDS, Outage
from matoolkit.ports import Bus, Outgoing
from matoolkit.worker.execution import unsendable
from matoolkit.worker.jobs_at_hand import Task

log = logging.getLogger(__name__)


class Settlement:
    """Publishes results, settles jobs and keeps their locks, from one thread."""

    def __init__(self, bus: Bus, bus_lock: threading.Lock, clock: Clock, renew_seconds: float) -> None:
        self._bus = bus
        self._bus_lock = bus_lock
        self._clock = clock
        self._renew_seconds = renew_seconds
        self._renew_at = clock.monotonic() + renew_seconds
        self._kept: list[Task] = []
        self._publishing = Outage("publishing results", log, clock)
        self._renewing = Outage("renewing the locks of jobs", log, clock)
        self._try_at = 0.0

    def try_to_settle(self, tasks: Sequence[Task]) -> list[Task]:
        """Publish results and settle their jobs, with those that were kept; return the settled ones."""
        self._kept += tasks
        if not self._kept or self._clock.monotonic() < self._try_at:
            return []
        pile = self._kept
        try:
            self.settle(pile)
        except MatoolkitError as error:
            if not (error.transient or isinstance(error, StoreError)):
                raise
            self._try_at = self._clock.monotonic() + self._publishing.failed(error)
            return []
        self._kept = []
        self._publishing.worked()
        return pile

    def settle(self, tasks: Sequence[Task]) -> None:
        """Publish results, then settle their jobs."""
        if not tasks:
            return
        with self._bus_lock:
            self._answer(tasks)
        is_verbose = log.isEnabledFor(logging.DEBUG)
        for task in tasks:
            result = _result(task)
            if is_verbose or result.status is not ResultStatus.SUCCESS:
                _log(task.job, result)

    def renew_when_due(self, tasks: Sequence[Task]) -> None:
        """Renew the locks of jobs; a job that another worker has taken since still runs to its end here."""
        if self._clock.monotonic() < self._renew_at:
            return
        self._renew_at = self._clock.monotonic() + self._renew_seconds
        if not tasks:
            return
        try:
            with self._bus_lock:
                ours = {id(received) for received in self._bus.renew([task.received for task in tasks])}
        except MatoolkitError as error:
            # Soon, or the locks run out.
            self._renew_at = self._clock.monotonic() + min(self._renewing.failed(error), FIRST_PAUSE_SECONDS)
            return
        self._renewing.worked()
        for task in tasks:
            if id(task.received) not in ours:
                log.warning("the lock ran out, the job may run twice", extra={"job": task.job.job_id})

    def give_back(self, tasks: Sequence[Task]) -> None:
        """Give jobs back, to be done by another worker."""
        if not tasks:
            return
        log.info("%d jobs are given back", len(tasks))
        try:
            with self._bus_lock:
                self._bus.abandon([task.received for task in tasks])
        except MatoolkitError as error:
            log.warning("jobs could not be given back, their locks will run out: %s", error.message)

    def _answer(self, tasks: Sequence[Task]) -> None:
        """Answer all jobs at once; a result that is too large for a message becomes a failure that says so."""
        for _ in tasks:
            try:
                self._publish(tasks)
            except (MessageTooLarge, UnwritableMessage) as error:
                _shrink(tasks, error.message_id)
            except MessageRefused as error:
                self._answer_each(tasks, error)
                return
            else:
                return
        self._publish(tasks)

    def _answer_each(self, tasks: Sequence[Task], error: MessageRefused) -> None:
        """Answer jobs one by one; one whose result the bus never takes is put aside for a person."""
        if len(tasks) > 1:
            for task in tasks:
                self._answer([task])
            return
        log.error("job %s is put aside: %s", tasks[0].job.job_id, error.message)
        self._bus.dead_letter(tasks[0].received, "Undeliverable", f"its result cannot be sent: {error.message}")

    def _publish(self, tasks: Sequence[Task]) -> None:
        self._bus.answer([_outgoing(task) for task in tasks], [task.received for task in tasks])


def _outgoing(task: Task) -> Outgoing:
    return Outgoing(result_id(task.job.job_id), _result(task), traceparent=task.traceparent)


def _result(task: Task) -> WorkerResult:
    if task.result is None:
        raise ValueError(f"job {task.job.job_id} has no result yet")
    return task.result


def _shrink(tasks: Sequence[Task], message_id: str) -> None:
    for task in tasks:
        if result_id(task.job.job_id) == message_id:
            task.result = unsendable(_result(task))


def _log(job: WorkerJob, result: WorkerResult) -> None:
    runbook = job.correlation.get("RunbookName") if isinstance(job.correlation, dict) else None
    about = {"runbook": runbook, "batch": job.batch_id, "job": job.job_id}
    if result.status is ResultStatus.SUCCESS:
        log.debug("%s is done", job.function_name, extra=about)
    else:
        log.warning("%s failed: %s", job.function_name, result.error and result.error.message, extra=about)
