"""Workers that do what the seed says: they answer, fail, are throttled, die, forget, or answer twice."""

from contextlib import suppress
from dataclasses import dataclass
from random import Random

from matoolkit.bus.boundaries import ANSWERED
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import jobs_of_worker
from matoolkit.bus.wire import decode
from matoolkit.clock import VirtualClock
from matoolkit.crashpoints import SimulatedCrash, crashing
from matoolkit.domain.messages import ResultStatus, WorkerError, WorkerJob, WorkerResult
from matoolkit.ids import result_id
from matoolkit.ports import Outgoing, Received
from matoolkit.runbook.templates import Json
from matoolkit.simulate.apart import BusApart
from matoolkit.simulate.declared import FRAGILE, SLOW
from matoolkit.simulate.faults import Fault, Faults
from matoolkit.simulate.runbooks import WORKERS

_DEATHS_BEFORE_THE_ANSWER = 0.5
# How often a call fails in phases in which only so many members may.
_FRAGILITY = 0.2
# How often what windows interrupt is not done yet.
_SLOWNESS = 0.7


@dataclass(frozen=True, slots=True)
class Done:
    """What a worker did, and what it said about it."""

    job: WorkerJob
    result: WorkerResult


class ScriptedWorkers:
    """All workers, which take jobs, keep them for a while and answer them."""

    def __init__(self, bus: SqlBus, clock: VirtualClock, rng: Random, faults: Faults) -> None:
        self._bus = bus
        self._clock = clock
        self._rng = rng
        self._faults = faults
        self.held: list[tuple[Received, WorkerJob]] = []
        self.taken: list[str] = []
        self.echoes: list[Done] = []
        self.said: dict[str, set[str]] = {}

    def take(self, most: int = 3) -> str:
        """Take some jobs."""
        for worker in WORKERS:
            subscription = jobs_of_worker(worker)
            for received in self._bus.receive(subscription, most):
                job = decode(subscription.topic, received.message_type, received.body)
                if isinstance(job, WorkerJob):
                    self.held.append((received, job))
                    self.taken.append(job.job_id)
        return f"{len(self.held)} at hand"

    def answer(self) -> str:
        """Do some of the jobs at hand and say so, or fail to."""
        some = self._rng.randint(1, 3)
        return "; ".join(self._answer_one() for _ in range(some) if self.held)

    def _answer_one(self) -> str:
        received, job = self.held.pop(self._rng.randrange(len(self.held)))
        if self._faults.strikes(Fault.DEAD_JOB):
            self._bus.dead_letter(received, "Poison", "nobody can do it")
            return f"{job.job_id} is put aside"
        done = Done(job, self._result(job))
        if self._faults.strikes(Fault.WORKER_DIED):
            return self._die(received, done)
        if self._faults.strikes(Fault.LOST_RESULT):
            self._bus.complete_now([received])
            return f"the result of {job.job_id} is lost"
        self._bus.answer([self._message(done)], [received])
        if self._faults.strikes(Fault.ANSWERED_TWICE):
            self.echoes.append(Done(job, self._result(job)))
        return f"{job.job_id} {_in_a_word(done)}"

    def _die(self, received: Received, done: Done) -> str:
        """Die before a job is answered, or, where the bus is apart, before it is settled."""
        self.held.clear()
        job = done.job.job_id
        if not isinstance(self._bus, BusApart) or self._rng.random() < _DEATHS_BEFORE_THE_ANSWER:
            return f"dies after {job}"
        with suppress(SimulatedCrash), crashing(ANSWERED.name):
            self._bus.answer([self._message(done)], [received])
        return f"dies after {job} {_in_a_word(done)}"

    def echo(self) -> Outgoing | None:
        """Return an answer that was given before, or another one to the same job, to be sent once more."""
        if not self.echoes:
            return None
        return self._message(self.echoes.pop(0))

    def keep(self) -> None:
        """Make the locks of the jobs at hand last."""
        ours = {id(received) for received in self._bus.renew([received for received, _ in self.held])}
        self.held = [entry for entry in self.held if id(entry[0]) in ours]

    def _result(self, job: WorkerJob) -> WorkerResult:
        at, correlation = self._clock.now(), job.correlation
        is_of_init = job.job_id.startswith("init-")
        if self._faults.strikes(Fault.THROTTLED):
            error = WorkerError("too many requests", "Throttled", is_throttled=True)
            return WorkerResult(job.job_id, ResultStatus.FAILURE, at, error=error, correlation=correlation)
        # Init steps run once for a batch, so they fail more often than others; otherwise their failures would be rare.
        is_failing = self._faults.strikes(Fault.FAILING) or (is_of_init and self._faults.strikes(Fault.FAILING))
        # What is done in so limited a phase also fails when nothing else goes wrong any more: most is done then.
        if is_failing or (job.function_name == FRAGILE and self._rng.random() < _FRAGILITY):
            error = WorkerError("it did not work", "Oops")
            return WorkerResult(job.job_id, ResultStatus.FAILURE, at, error=error, correlation=correlation)
        value: dict[str, Json] = {} if self._faults.strikes(Fault.MISSING_OUTPUT) else {"value": job.job_id}
        result: Json = value
        is_busy = not self._faults.are_over and self._rng.random() < (0.8 if is_of_init else 0.5)
        is_busy = is_busy or (job.function_name == SLOW and self._rng.random() < _SLOWNESS)
        if job.function_name in (SLOW, "Test-It"):
            result = {"complete": False} if is_busy else {"complete": True, "data": value}
        elif not self._faults.are_over and self._rng.random() < 0.01:
            result = {"complete": False}
        return WorkerResult(job.job_id, ResultStatus.SUCCESS, at, result=result, correlation=correlation)

    def _message(self, done: Done) -> Outgoing:
        """Make a message of an answer, and remember what was said."""
        self.said.setdefault(done.job.job_id, set()).add(_in_a_word(done))
        return Outgoing(result_id(done.job.job_id), done.result)


def _in_a_word(done: Done) -> str:
    error = done.result.error
    if error is not None:
        return "throttled" if error.is_throttled else "failed"
    is_incomplete = isinstance(done.result.result, dict) and done.result.result.get("complete") is False
    return "incomplete" if is_incomplete else "done"
