"""Rules O6 and O15: what a result says."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from matoolkit.domain.answers import event_of, merged, outputs_of
from matoolkit.domain.messages import ResultStatus, WorkerError, WorkerResult
from matoolkit.domain.step import Failed, Incomplete, Problem, Succeeded

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def answered(result: Any) -> Any:
    return event_of(WorkerResult("step-1-attempt-1", ResultStatus.SUCCESS, NOON, result=result), 1, NOON, DAY)


@pytest.mark.parametrize("result", [{"complete": False}, {"Complete": False, "data": 1}])
def test_o6_a_result_can_say_that_it_is_not_complete(result: Any) -> None:
    assert answered(result) == Incomplete(NOON, 1)


@pytest.mark.parametrize("result", [None, 1, "no", [], {}, {"complete": True}, {"complete": "false"}, {"complete": 0}])
def test_o6_everything_else_is_complete(result: Any) -> None:
    assert answered(result) == Succeeded(NOON, 1)


def test_o7_a_failure_is_told_in_the_workers_words() -> None:
    error = WorkerError("busy", "TooMany", is_throttled=True)
    result = WorkerResult("step-1-attempt-1", ResultStatus.FAILURE, NOON, error=error)
    assert event_of(result, 1, NOON, DAY) == Failed(NOON, 1, Problem("busy", "TooMany"), True, DAY)
    silent = event_of(WorkerResult("step-1-attempt-1", ResultStatus.FAILURE, NOON), 1, NOON, DAY)
    assert isinstance(silent, Failed)
    assert "did not say why" in silent.problem.message


def test_o15_fields_are_found_whatever_their_case_and_missing_ones_are_named() -> None:
    outputs = outputs_of({"ID": 7, "other": None}, {"UserId": "Id", "Other": "Other", "Guid": "MailboxGuid"})
    assert (outputs.found, outputs.missing) == ({"UserId": 7, "Other": None}, ("Guid",))


@pytest.mark.parametrize("result", [None, 5, "text", [1]])
def test_o15_a_result_that_is_no_object_owes_everything(result: Any) -> None:
    assert outputs_of(result, {"UserId": "Id"}).missing == ("UserId",)


def test_o6_outputs_come_from_data_only_if_the_result_says_that_it_is_complete() -> None:
    assert outputs_of({"complete": True, "data": {"Id": 1}, "Id": 2}, {"X": "Id"}).found == {"X": 1}
    assert outputs_of({"data": {"Id": 1}, "Id": 2}, {"X": "Id"}).found == {"X": 2}
    assert outputs_of({"complete": True, "data": None, "Id": 2}, {"X": "Id"}).found == {"X": 2}


def test_o15_a_new_value_wins_whatever_the_case_of_its_name() -> None:
    assert merged({"USERID": 1, "Other": 2}, {"UserId": 3}) == {"Other": 2, "UserId": 3}
