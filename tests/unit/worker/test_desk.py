"""The desk: results that belong together are settled together, and nobody waits for nothing."""

import threading
from typing import Any

import pytest

from matoolkit.clock import SystemClock
from matoolkit.domain.messages import ResultStatus, WorkerResult
from matoolkit.worker import desk as module
from matoolkit.worker.desk import Desk, Task
from tests.workshop import job

# Whoever waits so long for results has been forgotten.
FOR_EVER = 60.0


def a_desk(numbers: int) -> tuple[Desk, list[Task]]:
    desk = Desk(threads=4, clock=SystemClock())
    received: Any = None
    tasks = [Task(received, job(number, "Do-It")) for number in range(1, numbers + 1)]
    desk.put(tasks)
    return desk, tasks


def finish(desk: Desk, task: Task) -> None:
    result = WorkerResult(task.job.job_id, ResultStatus.SUCCESS, SystemClock().now())
    desk.finish(task, result, 0.05)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GATHERING_SECONDS", FOR_EVER)


def test_results_wait_for_those_of_jobs_that_run_beside() -> None:
    desk, (first, second) = a_desk(2)
    finish(desk, first)
    beside = threading.Thread(target=finish, args=(desk, second))
    beside.start()
    assert desk.finished(FOR_EVER, most=500) == [first, second]
    beside.join()


def test_a_result_waits_for_nobody_when_no_other_job_runs() -> None:
    desk, (only,) = a_desk(1)
    finish(desk, only)
    assert desk.finished(FOR_EVER, most=500) == [only]


def test_a_full_pile_waits_for_nobody() -> None:
    desk, (first, second, _third) = a_desk(3)
    finish(desk, first)
    finish(desk, second)
    assert desk.finished(FOR_EVER, most=2) == [first, second]
