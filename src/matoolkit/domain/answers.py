"""What a worker's result says: whether the work is done, and its outputs (rules O6 and O15)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from matoolkit.domain.masking import MASK
from matoolkit.domain.messages import ResultStatus, WorkerResult
from matoolkit.domain.step import Answer, Failed, Incomplete, Problem, Succeeded
from matoolkit.runbook.templates import Json


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs of a step that its result has, and those that are missing."""

    found: dict[str, Json]
    missing: tuple[str, ...]


def event_of(
    result: WorkerResult,
    attempt: int,
    at: datetime,
    throttle_limit: timedelta,
    kept_json: str | None = None,
    missing_json: str | None = None,
) -> Answer:
    """Say what happened to the step whose job has this result, what is kept of it, and which outputs it owes."""
    if result.status is ResultStatus.FAILURE:
        error = result.error
        if error is None:
            problem = Problem("the worker reported a failure and did not say why")
            return Failed(at, attempt, problem, result_json=kept_json)
        problem = Problem(error.message, error.type)
        return Failed(at, attempt, problem, error.is_throttled, throttle_limit, kept_json)
    if _field(result.result, "complete") is False:
        return Incomplete(at, attempt, kept_json)
    return Succeeded(at, attempt, kept_json, missing_json)


def is_complete(result: Json) -> bool | None:
    """Tell whether work that is polled is done; nothing if the result does not say."""
    complete = _field(result, "complete")
    return complete if isinstance(complete, bool) else None


def outputs_of(result: Json, wanted: Mapping[str, str]) -> Outputs:
    """Look up the outputs of a step in its result, or in the `data` of a result that says it is complete."""
    data = _field(result, "data")
    fields = data if _field(result, "complete") is True and data is not None else result
    folded = {key.casefold(): value for key, value in fields.items()} if isinstance(fields, dict) else {}
    found = {variable: folded[field.casefold()] for variable, field in wanted.items() if field.casefold() in folded}
    return Outputs(found, tuple(variable for variable in wanted if variable not in found))


def without_fields(result: Json, hidden: Collection[str]) -> Json:
    """Mask the fields of these folded names in a result, where `outputs_of` would find them."""
    if not isinstance(result, dict):
        return result
    return {
        name: MASK
        if name.casefold() in hidden and value is not None
        else without_fields(value, hidden)
        if name.casefold() == "data"
        else value
        for name, value in result.items()
    }


def merged(outputs: Mapping[str, Json], new: Mapping[str, Json]) -> dict[str, Json]:
    """Add new outputs to those that a member has; a new value wins, whatever the case of its name."""
    replaced = {name.casefold() for name in new}
    return {**{name: value for name, value in outputs.items() if name.casefold() not in replaced}, **new}


def _field(value: Json, name: str) -> Json:
    if not isinstance(value, dict):
        return None
    if name in value:
        return value[name]
    return next((held for key, held in value.items() if key.casefold() == name), None)
