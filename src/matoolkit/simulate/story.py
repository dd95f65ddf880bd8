"""A long story: a runbook over its whole calendar, with what happens in a real migration and nothing that is broken.

People join late and leave, a wave is moved, the view shows half of the people for a while, one member fails and is
retried by a person, the tenant throttles, and a new version comes in the middle.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random

from matoolkit.admin.publishing import publish
from matoolkit.admin.retrying import retry_members
from matoolkit.bus.topology import jobs_of_worker
from matoolkit.bus.wire import decode
from matoolkit.clock import VirtualClock
from matoolkit.domain.messages import ResultStatus, WorkerError, WorkerJob, WorkerResult
from matoolkit.domain.states import OverdueBehavior
from matoolkit.errors import Refused
from matoolkit.ids import result_id
from matoolkit.ports import Outgoing, Piece
from matoolkit.runbook.model import Runbook, Step
from matoolkit.runbook.parse import parse_runbook
from matoolkit.runbook.query import query_facts
from matoolkit.runbook.templates import Json
from matoolkit.simulate.doors import Doors
from matoolkit.simulate.faults import Faults
from matoolkit.simulate.invariants import Watch, nobody_twice
from matoolkit.simulate.jobs import Jobs
from matoolkit.simulate.processes import OrchestratorProcess, Plant, SchedulerProcess
from matoolkit.simulate.recording import entries_after
from matoolkit.simulate.timeline import Timeline
from matoolkit.simulate.timing import Due, next_time
from matoolkit.simulate.trouble import TroubleLog
from matoolkit.simulate.waking import nothing_forgotten

START = datetime(2026, 3, 9, 8, 0, tzinfo=UTC)
_FIRST, _SECOND = 10, 4
_LEAVER, _UNLUCKY, _LATE = "u03", "u05", "u99"
_ASKED_BEFORE_DONE = 2


class Story:
    """One runbook, its people, and what happens to them."""

    def __init__(self, content: str) -> None:
        self.content = content
        self.runbook = parse_runbook(content)
        first = max(phase.offset.minutes for phase in self.runbook.phases)
        # Everything happens at a part of the time between the first phase and T.
        self.span = timedelta(minutes=max(first, 60))
        self.clock = VirtualClock(START - self.span * 1.2)
        rng = Random(1)
        faults = Faults(rng)
        faults.are_over = True
        self.plant = Plant(self.clock, rng, faults, is_apart=False)
        self.rows = dict.fromkeys((f"u{number:02}" for number in range(1, _FIRST + 1)), START)
        self.rows |= dict.fromkeys((f"v{number:02}" for number in range(1, _SECOND + 1)), START + self.span / 5)
        self.hidden: set[str] = set()
        self.is_throttled = self.is_mended = False
        self.scheduler = SchedulerProcess(self.plant, "scheduler", self).scheduler
        self.orchestrator = OrchestratorProcess(self.plant, lambda: None)
        self.bus = self.plant.plain_bus()
        self.store = self.plant.state.open(self.clock)
        self.timeline = Timeline(self.plant.state, START)
        self.watch = Watch(is_apart=False)
        self.jobs = Jobs(self.plant)
        self.taken: list[str] = []
        self.asked: dict[str, int] = {}
        self._seen = 0

    def run(self) -> list[str]:
        """Tell it, and return its lines."""
        with TroubleLog() as trouble:
            self._publish(self.content, OverdueBehavior.RERUN)
            for at, what, act in self._acts():
                self._until(at)
                self.timeline.say(self.clock.now(), f"— {what}")
                act()
            self._until(None)
            trouble.check()
        return self.timeline.lines

    def pieces(self, query: str) -> Iterator[Piece]:
        """Return the rows of the source."""
        description = self.runbook.data_source
        columns = query_facts(query, description.type).columns or ()
        given = {column: _function_of(self.runbook, column) for column in columns}
        rows = []
        for key, start in self.rows.items():
            cells = {column: given[column] or f"{column} of {key}" for column in columns}
            cells |= {description.primary_key: key, description.batch_time_column or "": start.isoformat()}
            rows.append([cells[column] for column in columns])
        yield Piece(columns, [row for row, key in zip(rows, self.rows, strict=True) if key not in self.hidden])

    def _acts(self) -> list[tuple[datetime, str, Callable[[], None]]]:
        def at(part: float) -> datetime:
            return START - self.span * part

        if self.runbook.data_source.batch_time is not None:
            return []
        return [
            (at(0.8), f"{_LEAVER} is taken off the list", self._take_off),
            (at(0.7), f"{_LATE} is put on the list", lambda: self.rows.update({_LATE: START})),
            (at(0.6), "the second wave is moved", self._move_second),
            (at(0.4), "the view is broken and shows half of the people", self._break_view),
            (at(0.36), "the view is fixed", self.hidden.clear),
            (at(0.21), "the tenant throttles", lambda: self._throttle(True)),
            (at(0.193), "the tenant no longer throttles", lambda: self._throttle(False)),
            (at(0.1), "a new version is published", self._change_version),
            (at(-0.05), "a person fixes what was wrong and retries the failed members", self._retry),
        ]

    def _until(self, at: datetime | None) -> None:
        """Let everybody work until a time, or until nothing is left to do."""
        while at is None or self.clock.now() < at:
            self._round()
            if at is None and self._is_over():
                return
            ahead = next_time(self.plant)
            if at is None and self.runbook.data_source.batch_time is not None:
                # Otherwise the people in the source would be taken again.
                self.rows.clear()
            self.clock.advance((ahead if at is None else min(ahead, at)) - self.clock.now())

    def _is_over(self) -> bool:
        running = "SELECT 1 FROM batches WHERE status IN ('detected', 'init_dispatched', 'active')"
        return not self.plant.state.look(running)

    def _round(self) -> None:
        self.scheduler.tick()
        self.scheduler.sweep()
        self.orchestrator.orchestrator.sweep()
        while due := Due(self.plant):
            if due.events:
                self.orchestrator.events.turn()
            if due.jobs:
                self._work()
            if due.results:
                self.orchestrator.results.turn()
        entries = entries_after(self.plant.state, self._seen)
        self._seen = entries[-1].seq if entries else self._seen
        self.timeline.tell(self.clock.now(), entries)
        self.watch.see(entries)
        self.jobs.see(entries, self.taken, [])
        nobody_twice(self.plant.state)
        nothing_forgotten(self.plant.state, [], Doors(self.plant.state, self.clock))

    def _work(self) -> None:
        for worker in sorted({step.worker_id for step in _all_steps(self.runbook)}):
            self._work_as(worker)

    def _work_as(self, worker: str) -> None:
        subscription = jobs_of_worker(worker)
        received = self.bus.receive(subscription, 100)
        jobs = [decode(subscription.topic, message.message_type, message.body) for message in received]
        self.taken += [message.message_id for message in received]
        answers = [Outgoing(result_id(job.job_id), self._answer(job)) for job in jobs if isinstance(job, WorkerJob)]
        self.bus.answer(answers, received)

    def _answer(self, job: WorkerJob) -> WorkerResult:
        """Answer as a worker would: one member fails at T until a person fixes it, polls repeat a few times."""
        text = str(job.parameters)
        (kind, number, *_), at = job.job_id.split("-"), self.clock.now()
        is_cutover = kind == "step" and at >= START
        if self.is_throttled:
            error = WorkerError("the tenant is busy", "Throttled", is_throttled=True)
            return WorkerResult(job.job_id, ResultStatus.FAILURE, at, error=error, correlation=job.correlation)
        if is_cutover and _UNLUCKY in text and not self.is_mended:
            error = WorkerError("the mailbox is locked", "MailboxLocked")
            return WorkerResult(job.job_id, ResultStatus.FAILURE, at, error=error, correlation=job.correlation)
        data: Json = {field: f"{field} of {number}" for field in _fields(self.runbook)}
        if job.function_name.startswith("Test-"):
            self.asked[number] = self.asked.get(number, 0) + 1
            data = {"complete": self.asked[number] > _ASKED_BEFORE_DONE, "data": data}
        return WorkerResult(job.job_id, ResultStatus.SUCCESS, at, result=data, correlation=job.correlation)

    def _take_off(self) -> None:
        del self.rows[_LEAVER]

    def _move_second(self) -> None:
        later = START + self.span * 0.3
        self.rows |= {key: later for key in self.rows if key.startswith("v")}

    def _break_view(self) -> None:
        self.hidden |= set(sorted(self.rows)[::2])

    def _throttle(self, is_throttled: bool) -> None:
        self.is_throttled = is_throttled

    def _change_version(self) -> None:
        self._publish(f"{self.content}\nx-reviewed: true\n", OverdueBehavior.IGNORE)

    def _retry(self) -> None:
        self.is_mended = True
        for (batch,) in self.plant.state.look("SELECT DISTINCT batch_id FROM batch_members WHERE status = 'failed'"):
            try:
                retry_members(self.store, self.plant.publisher(self.store), batch, by="ann")
            except Refused as refused:
                self.timeline.say(self.clock.now(), f"the retry is refused: {refused.message}")

    def _publish(self, content: str, behavior: OverdueBehavior) -> None:
        done = publish(self.store, content, by="ann", now=self.clock.now(), overdue_behavior=behavior, enable=True)
        self.timeline.say(self.clock.now(), f"— version {done.version} of {done.name} is published")


def _all_steps(runbook: Runbook) -> Iterator[Step]:
    for phase in runbook.phases:
        yield from phase.steps


def _fields(runbook: Runbook) -> list[str]:
    """Return the fields of results that some step keeps."""
    return sorted({field for step in _all_steps(runbook) for field in step.output_params.values()})


def _function_of(runbook: Runbook, column: str) -> str | None:
    """Return a function that a column may name, if a step takes its function from it."""
    for step in _all_steps(runbook):
        if step.allowed_functions and column in step.function:
            return step.allowed_functions[0]
    return None
