"""Messages as the JSON that the contract shows, field by field."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from matoolkit.bus import topology
from matoolkit.clock import as_utc
from matoolkit.domain.messages import (
    AnnouncedParameter,
    BatchInit,
    BatchWake,
    JobFacts,
    MemberAdded,
    MemberRemoved,
    PhaseDue,
    PollCheck,
    RetryCheck,
    Timestamp,
    WorkerError,
    WorkerHello,
    WorkerJob,
    WorkerResult,
)
from matoolkit.ids import Kind
from matoolkit.records import record


def _write_batch(message: BatchInit | PhaseDue) -> dict[str, Any]:
    return {
        "BatchId": message.batch_id,
        "RunbookName": message.runbook_name,
        "RunbookVersion": message.runbook_version,
    }


def _write_phase_due(message: PhaseDue) -> dict[str, Any]:
    return {
        **_write_batch(message),
        "PhaseName": message.phase_name,
        "PhaseExecutionId": message.phase_execution_id,
    }


def _write_member(message: MemberAdded | MemberRemoved) -> dict[str, Any]:
    return {
        "BatchId": message.batch_id,
        "MemberKey": message.member_key,
        "BatchMemberId": message.batch_member_id,
    }


def _write_wake(message: BatchWake) -> dict[str, Any]:
    return {"BatchId": message.batch_id, "RunbookName": message.runbook_name}


def _write_execution(message: PollCheck | RetryCheck) -> dict[str, Any]:
    return {
        "StepExecutionId": message.execution_id,
        "IsInitStep": message.kind is Kind.INIT,
        "Kind": str(message.kind),
    }


def _write_job(message: WorkerJob) -> dict[str, Any]:
    return {
        "JobId": message.job_id,
        "BatchId": message.batch_id,
        "WorkerId": message.worker_id,
        "FunctionName": message.function_name,
        "Parameters": message.parameters,
        "CorrelationData": message.correlation,
        **({} if message.facts is None else _write_facts(message.facts)),
    }


def _write_facts(facts: JobFacts) -> dict[str, Any]:
    return {
        "Attempt": facts.attempt,
        "StepName": facts.step_name,
        "PhaseName": facts.phase_name,
        "MemberKey": facts.member_key,
        "Deadline": as_utc(facts.deadline),
    }


def _write_result(message: WorkerResult) -> dict[str, Any]:
    return {
        "JobId": message.job_id,
        "Status": str(message.status),
        "ResultType": message.result_type,
        "Result": message.result,
        "Error": _write_error(message.error),
        "DurationMs": message.duration_ms,
        "Timestamp": _write_time(message.timestamp),
        "CorrelationData": message.correlation,
    }


def _write_time(ended: Timestamp) -> Any:
    return as_utc(ended) if isinstance(ended, datetime) else ended


def _write_error(error: WorkerError | None) -> dict[str, Any] | None:
    if error is None:
        return None
    return {
        "Message": error.message,
        "Type": error.type,
        "IsThrottled": error.is_throttled,
        "Attempts": error.attempts,
    }


def _write_hello(message: WorkerHello) -> dict[str, Any]:
    functions = [
        {"Name": function.name, "Parameters": [_write_parameter(known) for known in function.parameters]}
        for function in message.functions
    ]
    return {"WorkerId": message.worker_id, "Functions": functions}


def _write_parameter(parameter: AnnouncedParameter) -> dict[str, Any]:
    return {
        "Name": parameter.name,
        "Type": parameter.type,
        "Mandatory": parameter.is_mandatory,
        "Secret": parameter.is_secret,
    }


@record
class Form:
    """What messages of a class are called, where they go, and how they are written."""

    message_type: str
    topic: str
    write: Callable[[Any], dict[str, Any]]


FORMS: dict[type[Any], Form] = {
    BatchInit: Form("batch-init", topology.ORCHESTRATOR_EVENTS, _write_batch),
    PhaseDue: Form("phase-due", topology.ORCHESTRATOR_EVENTS, _write_phase_due),
    MemberAdded: Form("member-added", topology.ORCHESTRATOR_EVENTS, _write_member),
    MemberRemoved: Form("member-removed", topology.ORCHESTRATOR_EVENTS, _write_member),
    BatchWake: Form("batch-wake", topology.ORCHESTRATOR_EVENTS, _write_wake),
    PollCheck: Form("poll-check", topology.ORCHESTRATOR_EVENTS, _write_execution),
    RetryCheck: Form("retry-check", topology.ORCHESTRATOR_EVENTS, _write_execution),
    WorkerJob: Form("worker-job", topology.WORKER_JOBS, _write_job),
    WorkerResult: Form("worker-result", topology.WORKER_RESULTS, _write_result),
    WorkerHello: Form("worker-hello", topology.WORKER_RESULTS, _write_hello),
}
