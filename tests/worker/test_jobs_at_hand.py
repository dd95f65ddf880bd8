"""The jobs at hand: results that belong together are settled together, and nobody waits for nothing."""

import threading
from typing import Any

import pytest

from matoolkit.clock import SystemClock
from matoolkit.domain.messages import ResultStatus, WorkerResult
from matoolkit.worker import jobs_at_hand as module
from matoolkit.worker.jobs_at_hand import JobsAtHand, Task
from tests.workshop import job

# A test that waits this long for results has failed.
FOR_EVER = 60.0


class Watched(SystemClock):
    """A clock that tells when somebody looks at it."""

    def __init__(self) -> None:
        self.looked = threading.Event()

    def monotonic(self) -> float:
        self.looked.set()
        return super().monotonic()


def jobs_for(numbers: int, clock: SystemClock | None = None) -> tuple[JobsAtHand, list[Task]]:
    jobs = JobsAtHand(threads=4, clock=clock or SystemClock())
    received: Any = None
    tasks = [Task(received, job(number, "Do-It")) for number in range(1, numbers + 1)]
    jobs.put(tasks)
    return jobs, tasks


def finish(jobs: JobsAtHand, task: Task) -> None:
    result = WorkerResult(task.job.job_id, ResultStatus.SUCCESS, SystemClock().now())
    jobs.finish(task, result, 0.05)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GATHERING_SECONDS", FOR_EVER)


def test_results_wait_for_those_of_jobs_that_run_beside() -> None:
    clock = Watched()
    jobs, (first, second) = jobs_for(2, clock)
    finish(jobs, first)
    clock.looked.clear()

    def once_the_first_is_taken() -> None:
        clock.looked.wait()
        finish(jobs, second)

    beside = threading.Thread(target=once_the_first_is_taken)
    beside.start()
    assert jobs.finished(FOR_EVER, most=500) == [first, second]
    beside.join()


def test_a_result_waits_for_nobody_when_no_other_job_runs() -> None:
    jobs, (only,) = jobs_for(1)
    finish(jobs, only)
    assert at_once(jobs, most=500) == [only]


def test_a_full_pile_waits_for_nobody() -> None:
    jobs, (first, second, _third) = jobs_for(3)
    finish(jobs, first)
    finish(jobs, second)
    assert at_once(jobs, most=2) == [first, second]


def at_once(jobs: JobsAtHand, most: int) -> list[Task]:
    """Return what is finished, unless somebody would have to wait for it."""
    found: list[Task] = []
    looking = threading.Thread(target=lambda: found.extend(jobs.finished(FOR_EVER, most)), daemon=True)
    looking.start()
    looking.join(FOR_EVER / 4)
    return found
