"""What a job tells its function about itself, besides its ids: additive on the wire (rule M9)."""

from datetime import timedelta

import orjson
import pytest

from matoolkit.bus.wire import decode, encode
from matoolkit.domain.messages import JobFacts, WorkerJob
from tests.databases import NOON
from tests.stage import Failing, Stage

RUNBOOK = """\
init:
  - {name: open, worker_id: worker-01, function: Open}
phases:
  - name: prepare
    offset: T-1d
    steps:
      - name: one
        worker_id: worker-01
        function: One
        timeout: 10m
        on_failure: undo
        retry: {max_retries: 1, interval: 5m}
rollbacks:
  undo:
    - {name: close, worker_id: worker-01, function: Close}
"""


def test_a_job_says_its_attempt_its_place_whose_it_is_and_when_it_counts_as_lost(stage: Stage) -> None:
    stage.answers["One"] = Failing("not now")
    batch = stage.batch(stage.publish(RUNBOOK), ["ada"])
    stage.run()
    stage.due(batch, "prepare")
    stage.run()
    sent = stage.now
    stage.later(minutes=5)
    opened, first, second, closed = (job.facts for job in stage.jobs)
    ten = timedelta(minutes=10)
    assert first == JobFacts(1, "one", "prepare", "ada", sent + ten)
    assert second == JobFacts(2, "one", "prepare", "ada", stage.now + ten)
    assert opened == JobFacts(1, "open", None, None, sent + timedelta(days=1))
    assert closed == JobFacts(1, "close", None, "ada", stage.now + timedelta(days=1))


JOB = WorkerJob("step-1-attempt-2", 42, "w", "F", {}, None, JobFacts(2, "one", "prepare", "ada", NOON))


def test_m9_the_facts_are_fields_beside_the_others() -> None:
    body = orjson.loads(encode(JOB)[1])
    added = {"Attempt": 2, "StepName": "one", "PhaseName": "prepare", "MemberKey": "ada"}
    assert body == {
        "JobId": "step-1-attempt-2",
        "BatchId": 42,
        "WorkerId": "w",
        "FunctionName": "F",
        "Parameters": {},
        "CorrelationData": None,
        **added,
        "Deadline": "2026-03-03T12:00:00Z",
    }


@pytest.mark.parametrize(
    "changed",
    [{"Deadline": None}, {"Deadline": 7}, {"Deadline": "soon"}, {"Attempt": "two"}, {"StepName": []}],
)
def test_m9_a_job_without_readable_facts_is_a_job(changed: dict[str, object]) -> None:
    body = orjson.loads(encode(JOB)[1]) | changed
    read = decode("worker-jobs", "worker-job", orjson.dumps(body).decode())
    assert isinstance(read, WorkerJob)
    assert read.facts is None
    assert read.job_id == JOB.job_id
