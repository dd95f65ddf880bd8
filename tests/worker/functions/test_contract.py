"""What every function promises (rules W2 and W4), tried on the simulated tenant over HTTP, one situation at a time."""

import logging
from typing import Any

import httpx
import pytest

from matoolkit.backoff import Backoff
from matoolkit.worker.clients.failures import (
    ObjectMissing,
    ObjectTaken,
    Rejected,
    Unanswered,
    Unreachable,
    UnreadableAnswer,
)
from matoolkit.worker.failures import FunctionFailed, Throttled
from matoolkit.worker.tenant import TenantServer
from matoolkit.worker.tenant.calls import Answer, Request
from tests.threads import in_threads
from tests.worker.functions.cases import ASKING, CASES, WRITING
from tests.worker.functions.office import MADE_UP, Office
from tests.worker.functions.office import office as new_office
from tests.worker.functions.situations import Case, nothing

every_function = pytest.mark.parametrize("case", CASES, ids=str)
every_writing_function = pytest.mark.parametrize("case", WRITING, ids=str)
may_be_new = [case for case in CASES if case.make_new is not nothing]


# What these write cannot be told from what was there, or there is nobody left to ask.
REFUSED_FOR_GOOD = {
    "Remove-EntraUser",
    "Set-EntraUserEnabled",
    "Set-EntraUserAttributes",
    "New-EntraB2BInvitation",
    "Set-EntraUserPassword",
    "Revoke-EntraUserSessions",
    "New-EntraTemporaryAccessPass",
}
# A password that is given is written again; that it is the same nobody can see.
WRITTEN_AGAIN = {"Set-EntraUserPassword"}


def run(office: Office, case: Case, **other: Any) -> Any:
    return office.run(case.function, {**case.params, **other})


def assert_returned(returned: Any, expected: Any) -> None:
    """Compare, where `...` stands for anything but nothing."""
    if isinstance(expected, dict):
        assert returned.keys() == expected.keys()
        for key, value in expected.items():
            assert_returned(returned[key], value)
    elif expected is ...:
        assert returned
    else:
        assert returned == expected
        assert type(returned) is type(expected)


def assert_nothing_secret(failure: FunctionFailed) -> None:
    told = repr(failure) + str(failure) + failure.message + repr(failure.__cause__)
    for secret in ("simulated-", "Bearer", MADE_UP):
        assert secret not in told


@every_function
def test_it_does_what_it_says(office: Office, case: Case) -> None:
    case.prepare(office)
    assert_returned(run(office, case), case.returns)
    assert case.is_done(office)


@every_function
def test_w2_a_second_run_succeeds_and_changes_nothing(office: Office, case: Case) -> None:
    case.prepare(office)
    first = run(office, case)
    state = office.state()
    second = run(office, case)
    assert office.state() == state or case.function in WRITTEN_AGAIN
    if case.makes_accounts:
        assert second == {**first, "Created": False}
    elif case.function == "New-EntraB2BInvitation":
        assert second["InvitedUserId"] == first["InvitedUserId"]
    else:
        assert second == first


@every_function
def test_w2_two_at_once_come_to_the_same_end(office: Office, case: Case) -> None:
    case.prepare(office)
    returned = in_threads([lambda: run(office, case)] * 2)
    assert case.is_done(office)
    if case.makes_accounts:
        assert sorted(one["Created"] for one in returned) == [False, True]
        assert len({one["Id"] for one in returned}) == 1
    else:
        for one in returned:
            assert_returned(one, case.returns)


@pytest.mark.parametrize("case", [case for case in CASES if case.absent], ids=str)
def test_w2_what_is_missing_is_told(office: Office, case: Case) -> None:
    case.prepare(office)
    state = office.state()
    if case.when_absent == "fails":
        with pytest.raises(ObjectMissing) as caught:
            run(office, case, **case.absent)
        assert_nothing_secret(caught.value)
        assert next(iter(case.absent.values())) in caught.value.message
    else:
        returned = run(office, case, **case.absent)
        assert returned is True or returned["complete"] is False
        assert (returned is True) == (case.when_absent == "succeeds")
    assert office.state() == state


@pytest.mark.parametrize("case", [case for case in CASES if case.conflict], ids=str)
def test_w2_a_name_that_somebody_else_has_is_a_failure(office: Office, case: Case) -> None:
    case.prepare(office)
    assert case.conflict
    case.conflict(office)
    state = office.state()
    with pytest.raises(ObjectTaken) as caught:
        run(office, case)
    assert office.state() == state
    assert_nothing_secret(caught.value)


@pytest.mark.parametrize("case", [case for case in may_be_new if case in WRITING], ids=str)
def test_w2_what_is_too_new_to_be_seen_is_waited_for(office: Office, case: Case) -> None:
    case.prepare(office)
    case.make_new(office)
    returned = run(office, case)
    assert office.seconds() >= 12
    if case.function == "New-EntraUser":
        assert returned["Created"] is False
    else:
        assert_returned(returned, case.returns)
        assert case.is_done(office)


@pytest.mark.parametrize("case", [case for case in may_be_new if case in ASKING], ids=str)
def test_w2_what_is_too_new_to_be_seen_is_not_complete_yet(office: Office, case: Case) -> None:
    case.prepare(office)
    case.make_new(office)
    assert run(office, case)["complete"] is False
    assert office.seconds() == 0, "a poll waits by itself"
    office.clock.sleep(12)
    assert run(office, case)["complete"] is True


@every_function
@pytest.mark.parametrize(
    "throttling",
    [
        pytest.param({"retry_after": 7}, id="seconds"),
        pytest.param({"retry_after": 7, "retry_after_as_date": True}, id="date"),
        pytest.param({}, id="no-word"),
        pytest.param({"status": 503, "retry_after": 7}, id="503"),
    ],
)
def test_w4_throttled_and_then_fine(office: Office, case: Case, throttling: dict[str, Any]) -> None:
    case.prepare(office)
    office.goes_wrong("throttle", case.main, times=2, **throttling)
    assert_returned(run(office, case), case.returns)
    assert case.is_done(office)
    assert office.seconds() >= (14 if throttling else 1 + 2)


@every_function
def test_w4_throttled_for_ever_is_told_as_throttled(office: Office, case: Case) -> None:
    case.prepare(office)
    state = office.state()
    office.goes_wrong("throttle", case.main, times=None, retry_after=30)
    with pytest.raises(Throttled) as caught:
        run(office, case)
    assert caught.value.is_throttled
    assert caught.value.attempts == 6
    assert office.state() == state
    assert_nothing_secret(caught.value)


@every_function
def test_slow_past_the_timeout_is_a_failure(server: TenantServer, impatient_http: httpx.Client, case: Case) -> None:
    with new_office(server, impatient_http, Backoff(count=1)) as office:
        case.prepare(office)
        office.goes_wrong("hang", times=None)
        with pytest.raises(Unreachable, match="Timeout") as caught:
            run(office, case)
        assert not caught.value.is_throttled
        # What may still be at work is not sent again.
        assert caught.value.attempts == (1 if isinstance(caught.value, Unanswered) else 2)
        assert_nothing_secret(caught.value)


@every_function
def test_slow_within_the_timeout_is_fine(office: Office, case: Case) -> None:
    case.prepare(office)
    office.goes_wrong("slow", case.main, seconds=45)
    assert_returned(run(office, case), case.returns)
    assert case.is_done(office)
    assert office.seconds() >= 45


@every_function
def test_a_malformed_answer_is_a_failure(office: Office, case: Case) -> None:
    case.prepare(office)
    state = office.state()
    office.goes_wrong("malformed", case.main, times=None)
    with pytest.raises(UnreadableAnswer) as caught:
        run(office, case)
    assert office.state() == state
    assert_nothing_secret(caught.value)


@every_function
def test_w4_a_token_that_expires_in_mid_job_is_replaced(office: Office, case: Case) -> None:
    case.prepare(office)
    run(office, ASKING[0])
    office.tenant.expire_tokens()
    assert_returned(run(office, case), case.returns)
    assert case.is_done(office)
    assert [status for _, status in office.tenant.calls].count(401) == 1


@every_function
@pytest.mark.parametrize("kind", ["reset", "lost", "fail"])
def test_w4_a_connection_that_breaks_is_tried_again(office: Office, case: Case, kind: str) -> None:
    case.prepare(office)
    office.goes_wrong(kind, case.main, status=502)
    assert_returned(run(office, case), case.returns)
    assert case.is_done(office)
    if len(office.tenant.asked(case.main)) > 1:
        assert office.seconds() >= 1, "a service in trouble is given time before a call is sent again"


@pytest.mark.parametrize("case", [case for case in WRITING if "Entra" in case.function], ids=str)
def test_w4_an_object_that_somebody_else_changes_at_the_same_moment_is_tried_again(office: Office, case: Case) -> None:
    case.prepare(office)
    office.goes_wrong("refuse", case.main, times=2, status=409, code="Directory_ConcurrencyViolation")
    assert_returned(run(office, case), case.returns)
    assert case.is_done(office)
    assert office.seconds() >= 1 + 2


@every_writing_function
def test_w2_a_refusal_does_not_count_when_things_are_as_they_should_be(office: Office, case: Case) -> None:
    """The call was carried out, or somebody else was quicker, and the service says no."""
    case.prepare(office)
    answer = office.tenant.answer

    def carry_out_and_refuse(request: Request) -> Answer:
        done = answer(request)
        is_refused = case.main in request.label and done.status in (200, 201, 204)
        return Answer(400, {"error": {"code": "Request_BadRequest", "message": "No."}}) if is_refused else done

    office.tenant.answer = carry_out_and_refuse  # type: ignore[method-assign]
    if case.function in REFUSED_FOR_GOOD:
        with pytest.raises(Rejected):
            run(office, case)
    else:
        returned = run(office, case)
        if case.makes_accounts:
            assert returned["Created"] is False
        else:
            assert_returned(returned, case.returns)
    if case.function not in {"New-ExchangeMailUser", "New-EntraTemporaryAccessPass"}:
        # An account that somebody else made is left as it is, and a pass that nobody knows is mailed to nobody.
        assert case.is_done(office)


@every_function
def test_nothing_secret_is_logged_or_returned(office: Office, case: Case, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    case.prepare(office)
    office.goes_wrong("throttle", case.main)
    returned = run(office, case)
    for secret in ("simulated-1", MADE_UP):
        assert secret not in caplog.text
        assert secret not in repr(returned)
