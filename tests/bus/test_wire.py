"""Rule M9: the eight messages, exactly as the contract shows them, and tolerance for who else writes them."""

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matoolkit.bus.envelope import sealed
from matoolkit.bus.wire import decode, encode
from matoolkit.domain.messages import (
    AnnouncedFunction,
    AnnouncedParameter,
    BatchInit,
    BatchWake,
    MemberAdded,
    MemberRemoved,
    Message,
    PhaseDue,
    PollCheck,
    ResultStatus,
    RetryCheck,
    WorkerError,
    WorkerHello,
    WorkerJob,
    WorkerResult,
    correlation_of,
)
from matoolkit.errors import UnreadableMessage
from matoolkit.ids import Kind
from matoolkit.ports import Outgoing

CORRELATION = correlation_of(123, Kind.STEP, "contoso-mailbox-migration", 1)
CORRELATION_DATA = {
    "StepExecutionId": 123,
    "IsInitStep": False,
    "Kind": "step",
    "RunbookName": "contoso-mailbox-migration",
    "RunbookVersion": 1,
}

# Message, topic, type, and the body of the contract, in its order.
CONTRACT: list[tuple[Message, str, str, dict[str, Any]]] = [
    (
        BatchInit(42, "contoso-mailbox-migration", 3),
        "orchestrator-events",
        "batch-init",
        {"BatchId": 42, "RunbookName": "contoso-mailbox-migration", "RunbookVersion": 3},
    ),
    (
        PhaseDue(42, "contoso-mailbox-migration", 3, "pre-notification", 108),
        "orchestrator-events",
        "phase-due",
        {
            "BatchId": 42,
            "RunbookName": "contoso-mailbox-migration",
            "RunbookVersion": 3,
            "PhaseName": "pre-notification",
            "PhaseExecutionId": 108,
        },
    ),
    (
        MemberAdded(42, "newuser@contoso.com", 505),
        "orchestrator-events",
        "member-added",
        {"BatchId": 42, "MemberKey": "newuser@contoso.com", "BatchMemberId": 505},
    ),
    (
        MemberRemoved(42, "removeduser@contoso.com", 503),
        "orchestrator-events",
        "member-removed",
        {"BatchId": 42, "MemberKey": "removeduser@contoso.com", "BatchMemberId": 503},
    ),
    (
        PollCheck(1042, Kind.STEP),
        "orchestrator-events",
        "poll-check",
        {"StepExecutionId": 1042, "IsInitStep": False},
    ),
    (
        RetryCheck(1042, Kind.INIT),
        "orchestrator-events",
        "retry-check",
        {"StepExecutionId": 1042, "IsInitStep": True},
    ),
    (
        WorkerJob(
            "step-123-attempt-1",
            42,
            "worker-01",
            "New-EntraUser",
            {"DisplayName": "John Doe", "UserPrincipalName": "jdoe@contoso.com"},
            CORRELATION,
        ),
        "worker-jobs",
        "worker-job",
        {
            "JobId": "step-123-attempt-1",
            "BatchId": 42,
            "WorkerId": "worker-01",
            "FunctionName": "New-EntraUser",
            "Parameters": {"DisplayName": "John Doe", "UserPrincipalName": "jdoe@contoso.com"},
            "CorrelationData": CORRELATION_DATA,
        },
    ),
    (
        WorkerResult(
            job_id="step-123-attempt-1",
            status=ResultStatus.SUCCESS,
            result_type="Object",
            result={"complete": True, "data": {"UserId": "abc-123"}},
            duration_ms=1234,
            timestamp="2025-03-15T10:30:00Z",
            correlation=CORRELATION,
        ),
        "worker-results",
        "worker-result",
        {
            "JobId": "step-123-attempt-1",
            "Status": "Success",
            "ResultType": "Object",
            "Result": {"complete": True, "data": {"UserId": "abc-123"}},
            "Error": None,
            "DurationMs": 1234,
            "Timestamp": "2025-03-15T10:30:00Z",
            "CorrelationData": CORRELATION_DATA,
        },
    ),
    (
        WorkerHello(
            "worker-01",
            (
                AnnouncedFunction(
                    "Do-It", (AnnouncedParameter("Password", "string", is_mandatory=True, is_secret=True),)
                ),
            ),
        ),
        "worker-results",
        "worker-hello",
        {
            "WorkerId": "worker-01",
            "Functions": [
                {
                    "Name": "Do-It",
                    "Parameters": [{"Name": "Password", "Type": "string", "Mandatory": True, "Secret": True}],
                }
            ],
        },
    ),
    (
        BatchWake(42, "contoso-mailbox-migration"),
        "orchestrator-events",
        "batch-wake",
        {"BatchId": 42, "RunbookName": "contoso-mailbox-migration"},
    ),
]


def without_kind(value: Any) -> Any:
    """Leave out the one field that is ours."""
    if isinstance(value, dict):
        return {key: without_kind(inner) for key, inner in value.items() if key != "Kind"}
    return value


@pytest.mark.parametrize(("message", "topic", "message_type", "body"), CONTRACT, ids=lambda value: str(value)[:20])
def test_m9_messages_are_written_as_the_contract_shows_them(
    message: Message, topic: str, message_type: str, body: dict[str, Any]
) -> None:
    (envelope,) = sealed([Outgoing("any", message)])
    assert (envelope.topic, envelope.message_type) == (topic, message_type)
    assert json.loads(envelope.properties_json)["MessageType"] == message_type
    assert json.dumps(without_kind(json.loads(envelope.body))) == json.dumps(without_kind(body))


def test_m9_a_job_carries_its_worker_as_a_property() -> None:
    (envelope,) = sealed([Outgoing("any", CONTRACT[6][0])])
    assert json.loads(envelope.properties_json)["WorkerId"] == "worker-01"


@pytest.mark.parametrize(("message", "topic", "message_type", "body"), CONTRACT, ids=lambda value: str(value)[:20])
def test_m9_what_was_written_is_read_back(
    message: Message, topic: str, message_type: str, body: dict[str, Any]
) -> None:
    _, written = encode(message)
    assert decode(topic, message_type, written) == message


@pytest.mark.parametrize(("message", "topic", "message_type", "body"), CONTRACT, ids=lambda value: str(value)[:20])
@pytest.mark.parametrize("spelling", [str.lower, str.upper, lambda name: name[0].lower() + name[1:]])
def test_m9_fields_are_read_in_any_case_and_unknown_ones_ignored(
    message: Message, topic: str, message_type: str, body: dict[str, Any], spelling: Any
) -> None:
    document = {spelling(name): value for name, value in body.items()} | {"unknown": [1], "pollCount": 5}
    assert decode(topic, message_type, json.dumps(document)) == message


def test_m9_the_earlier_contracts_spelling_is_understood() -> None:
    body = {
        "messageType": "phase-due",
        "runbookName": "contoso-mailbox-migration",
        "runbookVersion": 3,
        "batchId": 42,
        "phaseExecutionId": 108,
        "phaseName": "pre-notification",
        "offsetMinutes": 7200,
        "dueAt": "2025-03-10T00:00:00Z",
        "memberIds": [501, 502],
    }
    expected = PhaseDue(42, "contoso-mailbox-migration", 3, "pre-notification", 108)
    assert decode("orchestrator-events", None, json.dumps(body)) == expected


def test_m9_snake_case_and_numbers_as_text_are_understood() -> None:
    body = {"batch_id": "42", "member_key": "a", "batch_member_id": 1}
    assert decode("orchestrator-events", "member-added", json.dumps(body)) == MemberAdded(42, "a", 1)


def test_m9_jobs_and_results_need_no_message_type() -> None:
    for message, topic, _, body in CONTRACT[6:8]:
        assert decode(topic, None, json.dumps(body)) == message


def test_m9_parameters_and_results_keep_their_spelling() -> None:
    job = CONTRACT[6][0]
    assert isinstance(job, WorkerJob)
    _, written = encode(job)
    body = json.loads(written) | {"Parameters": {"some_Name": {"Inner_Key": 1}}}
    read = decode("worker-jobs", None, json.dumps(body))
    assert isinstance(read, WorkerJob)
    assert read.parameters == {"some_Name": {"Inner_Key": 1}}


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({}, Kind.STEP),
        ({"IsInitStep": False}, Kind.STEP),
        ({"IsInitStep": True}, Kind.INIT),
        ({"IsInitStep": "True"}, Kind.INIT),
        ({"Kind": "rollback", "IsInitStep": False}, Kind.ROLLBACK),
        ({"kind": "Init"}, Kind.INIT),
    ],
)
def test_m9_kind_decides_and_in_its_absence_is_init_step(fields: dict[str, Any], kind: Kind) -> None:
    body = json.dumps({"StepExecutionId": 7, **fields})
    assert decode("orchestrator-events", "poll-check", body) == PollCheck(7, kind)


def test_m9_an_error_is_written_and_read() -> None:
    result = WorkerResult(
        "step-1-attempt-1",
        ResultStatus.FAILURE,
        "2025-03-15T00:00:00Z",
        error=WorkerError("User not found", "Microsoft.Graph.ServiceException", is_throttled=False, attempts=1),
    )
    _, written = encode(result)
    body = json.loads(written)
    assert body["Error"] == {
        "Message": "User not found",
        "Type": "Microsoft.Graph.ServiceException",
        "IsThrottled": False,
        "Attempts": 1,
    }
    assert decode("worker-results", None, json.dumps(body)) == result


@pytest.mark.parametrize("timestamp", [{}, {"Timestamp": "noon"}, {"Timestamp": None}])
def test_m9_a_result_is_read_whatever_its_worker_says_about_the_time(timestamp: dict[str, Any]) -> None:
    read = decode("worker-results", None, json.dumps({"JobId": "a", "Status": "Success", **timestamp}))
    assert read == WorkerResult("a", ResultStatus.SUCCESS, timestamp.get("Timestamp"))


def test_m9_the_time_of_a_result_is_written_in_utc() -> None:
    elsewhere = timezone(timedelta(hours=2))
    _, written = encode(WorkerResult("a", ResultStatus.SUCCESS, datetime(2025, 3, 15, 12, 30, tzinfo=elsewhere)))
    assert json.loads(written)["Timestamp"] == "2025-03-15T10:30:00Z"


@pytest.mark.parametrize(
    ("topic", "message_type", "body", "why"),
    [
        ("orchestrator-events", "batch-init", "{", "not JSON"),
        ("orchestrator-events", "batch-init", "[]", "not a JSON object"),
        ("orchestrator-events", "nope", "{}", "'nope' is not known"),
        ("orchestrator-events", None, "{}", "'' is not known"),
        ("orchestrator-events", "batch-init", "{}", "'BatchId' is missing"),
        ("orchestrator-events", "batch-init", '{"BatchId": true}', "'BatchId' is not a whole number"),
        ("orchestrator-events", "member-added", '{"BatchId": 1, "MemberKey": 5}', "'MemberKey' is not text"),
        ("orchestrator-events", "poll-check", '{"StepExecutionId": 1, "Kind": "x"}', "'Kind' is none of"),
        ("worker-results", None, '{"JobId": "a", "Status": "Maybe"}', "'Status' is neither"),
        ("worker-results", "worker-hello", '{"WorkerId": "w", "Functions": [1]}', "'Functions' is not a list"),
        (
            "worker-jobs",
            None,
            '{"JobId": "a", "BatchId": 1, "WorkerId": "w", "FunctionName": "f", "Parameters": 5}',
            "Par",
        ),
    ],
)
def test_a_message_that_cannot_be_read_says_why(topic: str, message_type: str | None, body: str, why: str) -> None:
    with pytest.raises(UnreadableMessage, match=why):
        decode(topic, message_type, body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=12,
)
NAMES = st.sampled_from(["BatchId", "MemberKey", "JobId", "Status", "Kind", "CorrelationData", "Error", "Functions"])


@given(st.sampled_from([entry[2] for entry in CONTRACT]), st.dictionaries(NAMES | st.text(), JSON, max_size=8))
def test_any_json_gives_a_message_or_the_readers_own_error(message_type: str, body: dict[str, Any]) -> None:
    try:
        decode("orchestrator-events", message_type, json.dumps(body))
    except UnreadableMessage:
        return


@given(st.binary())
def test_any_bytes_give_the_readers_own_error(body: bytes) -> None:
    with pytest.raises(UnreadableMessage):
        decode("orchestrator-events", "batch-init", body)
