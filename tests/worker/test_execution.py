"""W7: what a result says, and that whatever goes wrong fails one job alone."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import pytest

from matoolkit.bus.topology import RESULTS_OF_ORCHESTRATOR
from matoolkit.bus.wire import encode
from matoolkit.clock import VirtualClock
from matoolkit.domain.messages import JobFacts, ResultStatus, WorkerError, WorkerJob
from matoolkit.ports import Outgoing
from matoolkit.store import queue
from matoolkit.worker import Context, Job, function
from tests.databases import NOON
from tests.workshop import WORKER, Workshop, job

pytestmark = pytest.mark.on("sqlite")


def body_of_result(workshop: Workshop) -> dict[str, Any]:
    (received,) = workshop.bus.receive(RESULTS_OF_ORCHESTRATOR, 10)
    found: dict[str, Any] = orjson.loads(received.body)
    return found


def test_w7_a_result_is_written_as_the_contract_shows(workshop: Workshop, clock: VirtualClock) -> None:
    def slow() -> dict[str, Any]:
        clock.advance(timedelta(milliseconds=1234))
        return {"complete": True, "data": {"UserId": "abc-123"}}

    @function("Take-Time")
    def take_time(context: Context) -> dict[str, Any]:
        """Take time."""
        return slow()

    workshop.registry.register(take_time)
    sent = job(123, "Take-Time")
    workshop.bus.send([Outgoing(sent.job_id, sent)])
    workshop.runner().turn()
    assert body_of_result(workshop) == {
        "JobId": "step-123-attempt-1",
        "Status": "Success",
        "ResultType": "Object",
        "Result": {"complete": True, "data": {"UserId": "abc-123"}},
        "Error": None,
        "DurationMs": 1234,
        "Timestamp": "2026-03-03T12:00:01.234000Z",
        "CorrelationData": {
            "StepExecutionId": 123,
            "IsInitStep": False,
            "Kind": "step",
            "RunbookName": "people",
            "RunbookVersion": 3,
        },
    }


def test_w7_a_failure_is_written_as_the_contract_shows(workshop: Workshop) -> None:
    workshop.send("Raise-It", 5, Kind="failed")
    workshop.runner().turn()
    body = body_of_result(workshop)
    assert body["Status"] == "Failure"
    assert body["Result"] is None
    assert body["ResultType"] is None
    assert body["CorrelationData"]["StepExecutionId"] == 5
    assert body["Error"] == {
        "Message": "no such user",
        "Type": "Request_ResourceNotFound",
        "IsThrottled": False,
        "Attempts": 2,
    }


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "Boolean"),
        (None, None),
        ("text", "String"),
        (5, "Number"),
        (0.5, "Number"),
        ([1], "Array"),
        ({"a": 1}, "Object"),
    ],
)
def test_w7_the_type_of_a_result_is_named(workshop: Workshop, value: Any, kind: str | None) -> None:
    result = workshop.result_of("Return-It", Value=value)
    assert (result.result, result.result_type) == (value, kind)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("throttled", WorkerError("come back later", "Throttled", is_throttled=True, attempts=6)),
        ("other", WorkerError("other", "ValueError")),
        ("exit", WorkerError("3", "SystemExit")),
        ("silent", WorkerError("LookupError", "LookupError")),
        ("unspeakable", WorkerError("tests.workshop.Unspeakable", "tests.workshop.Unspeakable")),
        ("\ud800".encode("utf-8", "surrogatepass").decode(errors="replace"), None),
    ],
)
def test_w7_whatever_a_function_raises_is_told(workshop: Workshop, kind: str, expected: WorkerError | None) -> None:
    result = workshop.result_of("Raise-It", Kind=kind)
    assert result.status is ResultStatus.FAILURE
    if expected is not None:
        assert result.error == expected


def test_w7_an_endless_message_is_cut(workshop: Workshop) -> None:
    result = workshop.result_of("Raise-It", Kind="x" * 100_000)
    assert result.error is not None
    assert len(result.error.message) == 4000


def test_w3_a_function_that_the_worker_does_not_have_is_a_failure(workshop: Workshop) -> None:
    result = workshop.result_of("Remove-Everything", UserId="u")
    assert result.error == WorkerError("this worker has no function 'Remove-Everything'", "UnknownFunction")


def test_w3_a_job_whose_parameters_do_not_fit_is_a_failure_and_nothing_is_called(workshop: Workshop) -> None:
    result = workshop.result_of("Do-It", UserID=["u"], Twice=True)
    assert result.error is not None
    assert result.error.type == "InvalidParameters"
    assert "UserId has to be text" in result.error.message
    assert "no parameter 'Twice'" in result.error.message
    assert workshop.calls == []


def test_w3_a_job_for_another_worker_is_a_failure(workshop: Workshop) -> None:
    workshop.send("Do-It", 1)
    with workshop.store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE bus_messages SET body = replace(body, 'worker-01', 'worker-02')")
    workshop.runner().turn()
    (result,) = workshop.results().values()
    assert result.error == WorkerError("the job is for worker 'worker-02', and this is worker-01", "WrongWorker")
    assert workshop.calls == []


def test_w1_the_worker_id_is_compared_without_regard_to_case(workshop: Workshop) -> None:
    workshop.send("Do-It", 1, worker=WORKER)
    with workshop.store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE bus_messages SET body = replace(body, 'worker-01', 'Worker-01')")
    workshop.runner().turn()
    (result,) = workshop.results().values()
    assert result.status is ResultStatus.SUCCESS


def returning(workshop: Workshop, value: Any) -> Any:
    @function("Return-This")
    def return_this(context: Context) -> Any:
        """Return something."""
        return value

    workshop.registry.register(return_this)
    sent = job(1, "Return-This")
    workshop.bus.send([Outgoing(sent.job_id, sent)])
    workshop.runner().turn()
    (result,) = workshop.results().values()
    return result


@pytest.mark.parametrize("value", [{1, 2}, object(), b"bytes", 2**70, "\ud800"])
def test_w7_a_result_that_is_not_json_is_a_clear_failure(workshop: Workshop, value: Any) -> None:
    result = returning(workshop, value)
    assert result.status is ResultStatus.FAILURE
    assert result.error.type == "UnusableResult"
    assert "Return-This returned something that is not JSON" in result.error.message


def test_w7_a_result_that_is_too_large_is_a_clear_failure(workshop: Workshop) -> None:
    result = returning(workshop, ["x" * 1000] * 300)
    assert result.status is ResultStatus.FAILURE
    assert result.error.type == "UnusableResult"
    assert "returned 300,901 bytes; at most" in result.error.message


def _nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "correlation"),
    [("x" * 220_000, "r" * 40_000), ("x", "r" * 250_000), ("x", _nested(300))],
    ids=["together too large", "correlation too large", "correlation too deep"],
)
def test_w7_a_result_that_cannot_be_sent_is_a_clear_failure_of_its_job_alone(
    workshop: Workshop, value: str, correlation: Any
) -> None:
    workshop.send("Do-It", 2, UserId="ada")
    put(workshop, {**body_of(job(1, "Return-It", parameters={"Value": value})), "CorrelationData": correlation})
    workshop.runner().turn()
    results = workshop.results()
    assert results["step-2-attempt-1"].status is ResultStatus.SUCCESS
    assert results["step-1-attempt-1"].error == WorkerError(
        "the result cannot be sent: it is too large or nested too deep", "UnusableResult"
    )
    assert workshop.waiting() == 0


def test_w7_a_result_that_is_nested_too_deep_once_it_is_packed_is_a_clear_failure(workshop: Workshop) -> None:
    result = returning(workshop, _nested(254))
    assert result.error.type == "UnusableResult"


@pytest.mark.parametrize(
    "came", [None, [1, "two"], "text", 3, {}, {"stepExecutionId": 7, "Mine": {"some_Key": [None]}}]
)
def test_w7_what_came_with_a_job_goes_back_with_its_result(workshop: Workshop, came: Any) -> None:
    put(workshop, {**body_of(job(1, "Return-It", parameters={"Value": 1})), "CorrelationData": came})
    workshop.runner().turn()
    assert body_of_result(workshop)["CorrelationData"] == came


def test_w7_a_job_without_correlation_is_done(workshop: Workshop) -> None:
    without = body_of(job(1, "Return-It", parameters={"Value": 1}))
    del without["CorrelationData"]
    put(workshop, without)
    workshop.runner().turn()
    assert body_of_result(workshop)["CorrelationData"] is None


def body_of(sent: WorkerJob) -> dict[str, Any]:
    _, body = encode(sent)
    found: dict[str, Any] = orjson.loads(body)
    return found


def put(workshop: Workshop, body: dict[str, Any]) -> None:
    """Put a job into its subscription that our own bus would not write, as another program may."""
    name, text = body["JobId"], json.dumps(body)
    queued = queue.NewQueued(
        "worker-jobs", f"worker-{WORKER}", name, "worker-job", text, "{}", NOON, NOON + timedelta(1)
    )
    with workshop.store.transaction() as tx:
        queue.enqueue(tx, [queued], workshop.clock.now(), forget_before=workshop.clock.now())


def seen_job(workshop: Workshop, sent: WorkerJob) -> Job | None:
    seen: list[Job | None] = []

    @function("See-It")
    def see_it(context: Context) -> None:
        """Look at its job."""
        seen.append(context.job)

    workshop.registry.register(see_it)
    workshop.bus.send([Outgoing(sent.job_id, sent)])
    workshop.runner().turn()
    return seen[0]


def test_w7_a_function_sees_its_job(workshop: Workshop) -> None:
    facts = JobFacts(2, "create", "prepare", "ada", NOON)
    sent = replace(job(123, "See-It"), job_id="step-123-retry-2", facts=facts)
    expected = Job("step-123-retry-2", 42, 2, "step-123", "people", "prepare", "create", "ada", NOON)
    assert seen_job(workshop, sent) == expected


def test_w7_a_job_of_an_older_orchestrator_has_at_least_its_ids(workshop: Workshop) -> None:
    assert seen_job(workshop, job(123, "See-It")) == Job("step-123-attempt-1", 42, 1, "step-123", "people")
