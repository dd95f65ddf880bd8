"""W3, W7: only registered names run, and whatever a function does becomes a result."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.domain.messages import Correlation, ResultStatus, WorkerJob
from matoolkit.ids import Kind
from matoolkit.runbook.catalogue import BUILT_IN
from matoolkit.runbook.templates import Json
from matoolkit.worker.functions import Registry, type_of
from matoolkit.worker.rehearsal import rehearsal

CLOCK = VirtualClock(datetime(2026, 5, 4, 12, tzinfo=UTC))


def job(function: str, **parameters: Json) -> WorkerJob:
    return WorkerJob("step-7-attempt-1", 3, "worker-01", function, parameters, Correlation(7, Kind.STEP, "wave", 2))


def refuse(parameters: Mapping[str, Json]) -> Json:
    raise PermissionError("not here")


def test_w7_a_result_has_the_value_and_returns_what_the_job_brought() -> None:
    result = Registry({"Echo": dict}).result_of(job("echo", Name="Ada"), CLOCK)
    assert (result.status, result.result, result.result_type) == (ResultStatus.SUCCESS, {"Name": "Ada"}, "Object")
    assert (result.job_id, result.timestamp) == ("step-7-attempt-1", CLOCK.now())
    assert result.correlation == Correlation(7, Kind.STEP, "wave", 2)


def test_w7_a_function_that_raises_is_a_failure() -> None:
    result = Registry({"Refuse": refuse}).result_of(job("Refuse"), CLOCK)
    assert result.status is ResultStatus.FAILURE
    assert result.error
    assert (result.error.message, result.error.type) == ("not here", "PermissionError")


def test_w3_a_name_that_is_not_registered_does_not_run() -> None:
    result = Registry({}).result_of(job("os.system"), CLOCK)
    assert result.status is ResultStatus.FAILURE
    assert result.error
    assert result.error.type == "UnknownFunction"


@pytest.mark.parametrize("function", [function.name for function in BUILT_IN.values()])
def test_the_rehearsal_answers_under_every_built_in_name(function: str) -> None:
    result = rehearsal().result_of(job(function, UserPrincipalName="ada@fabrikam.com", Password="x"), CLOCK)
    assert result.status is ResultStatus.SUCCESS
    assert isinstance(result.result, dict)
    assert "Password" not in result.result
    assert ("complete" in result.result) == function.startswith("Test-")


def test_the_rehearsal_gives_the_same_account_the_same_id() -> None:
    first, again = (
        rehearsal().result_of(job("New-EntraUser", UserPrincipalName=name), CLOCK).result
        for name in ("ada@fabrikam.com", "Ada@Fabrikam.com")
    )
    assert isinstance(first, dict)
    assert isinstance(again, dict)
    assert first["Id"] == again["Id"]
    assert first["Created"] is True


@pytest.mark.parametrize(
    ("value", "name"),
    [(True, "Boolean"), ("a", "String"), (1, "Number"), (1.5, "Number"), ([1], "Array"), ({"a": 1}, "Object")],
)
def test_kinds_of_results_are_named(value: Json, name: str) -> None:
    assert type_of(value) == name
