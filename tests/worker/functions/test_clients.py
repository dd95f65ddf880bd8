"""The clients against the tenant: one pause for all threads, pages, tokens, and what must never reach the wire."""

import threading
from typing import Any

import httpx
import pytest

from matoolkit.backoff import Backoff
from matoolkit.worker.clients.failures import InvalidIdentifier, Rejected, SignInFailed, Unreachable, UnreadableAnswer
from matoolkit.worker.failures import Throttled
from matoolkit.worker.tenant import TenantServer
from matoolkit.worker.tenant.calls import Answer, Request
from tests.threads import in_threads
from tests.worker.functions.office import JANE, LIST, OMAR, STAFF, Office
from tests.worker.functions.office import office as new_office


def always(office: Office, answer: Answer) -> None:
    """Let the tenant say the same to everything."""

    def answer_all(request: Request) -> Answer:
        return answer

    office.tenant.answer = answer_all  # type: ignore[method-assign]


@pytest.mark.off_contract
def test_removing_a_member_never_deletes_the_user(office: Office) -> None:
    """Without `/$ref` the same call deletes the account, in Graph and in the simulated tenant."""
    office.clients.graph.add_member(STAFF, JANE)
    office.clients.graph.remove_member(STAFF, JANE)
    assert office.tenant.asked("DELETE") == [f"DELETE /v1.0/groups/{STAFF}/members/{JANE}/$ref"]
    assert JANE in office.tenant.directory.users

    without = Request("DELETE", f"/v1.0/groups/{STAFF}/members/{JANE}", {"Authorization": "Bearer x"})
    assert office.tenant.answer(without).status == 204
    assert JANE not in office.tenant.directory.users


@pytest.mark.parametrize(
    "user",
    ["", " ", f"{JANE}?", f"{JANE}/", f"{JANE}#", "..", ".", "a b", "jane@contoso.example", "żółć", f"{JANE}/$ref"],
)
def test_w3_nothing_but_an_object_id_gets_into_a_membership_call(office: Office, user: str) -> None:
    with pytest.raises(InvalidIdentifier):
        office.clients.graph.remove_member(STAFF, user)
    with pytest.raises(InvalidIdentifier):
        office.clients.graph.add_member(STAFF, user)
    assert office.tenant.calls == []


@pytest.mark.parametrize("upn", ["o'brien@contoso.example", "x_y.example#EXT#@contoso.example", "żółć@contoso.example"])
def test_w3_a_upn_arrives_as_it_is(office: Office, upn: str) -> None:
    office.tenant.directory.rename(office.user(), upn)
    assert office.clients.graph.find_user(upn, ()) == {"id": JANE}


def test_w4_one_throttled_call_keeps_all_threads_from_calling(office: Office) -> None:
    """Eight threads ask at once; the first is throttled for a minute, and nobody calls again before it is over."""
    times: list[float] = []
    answer = office.tenant.answer
    gate = threading.Barrier(8)

    def timed(request: Request) -> Answer:
        times.append(office.seconds())
        return answer(request)

    office.tenant.answer = timed  # type: ignore[method-assign]
    # One thread may be quick enough to meet them all, and bears no more.
    office.goes_wrong("throttle", times=Backoff().count, retry_after=60)

    def ask() -> Any:
        gate.wait()
        return office.clients.graph.find_user(JANE, ())

    assert in_threads([ask] * 8) == [{"id": JANE}] * 8
    assert [time for time in times if 0 < time < 60] == []
    assert max(times) >= 60


def test_w4_the_pause_is_one_for_each_api(office: Office) -> None:
    office.goes_wrong("throttle", "/v1.0/", retry_after=600)
    office.goes_wrong("reset", "/v1.0/", times=None)
    with pytest.raises(Unreachable):
        office.clients.graph.find_user(JANE, ())
    waited = office.seconds()
    assert waited >= 600
    office.clients.graph._api.pause.extend(1000)  # noqa: SLF001
    assert office.clients.exchange.run("Get-MailUser", {"Identity": JANE})
    assert office.seconds() == waited, "Exchange asked for nothing"


def test_w4_waiting_for_the_pause_uses_up_no_try(office: Office) -> None:
    office.clients.graph._api.pause.extend(500)  # noqa: SLF001
    office.goes_wrong("throttle", times=5)
    assert office.clients.graph.find_user(JANE, ()) == {"id": JANE}


def test_w4_whoever_reads_the_log_learns_why_nothing_moves(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    office.goes_wrong("throttle", retry_after=45)
    office.goes_wrong("reset")
    office.clients.graph.find_user(JANE, ())
    said = [record.getMessage() for record in caplog.records if record.name.startswith("matoolkit")]
    assert said[0] == "Graph throttles: no thread calls it for 45 s"
    assert said[1].startswith("calling Graph fails, and is tried again: Graph does not answer as it should: ")
    assert said[2].startswith("calling Graph works again after ")


def test_w4_exchange_says_busy_in_its_own_way(office: Office) -> None:
    office.goes_wrong("busy", "Get-MailUser", times=2)
    assert office.clients.exchange.run("Get-MailUser", {"Identity": JANE})
    assert office.seconds() >= 1 + 2
    office.goes_wrong("busy", times=None)
    with pytest.raises(Throttled) as caught:
        office.clients.exchange.run("Get-MailUser", {"Identity": JANE})
    assert caught.value.attempts == 6


def test_w4_a_service_that_is_broken_for_good_is_not_called_throttled(office: Office) -> None:
    office.goes_wrong("fail", times=None, status=500)
    with pytest.raises(Unreachable, match="status 500") as caught:
        office.clients.graph.find_user(JANE, ())
    assert not caught.value.is_throttled
    assert caught.value.attempts == 6


def test_w4_no_tries_are_made_when_none_are_allowed(server: TenantServer, http: httpx.Client) -> None:
    with new_office(server, http, Backoff(count=0)) as office:
        office.goes_wrong("throttle")
        with pytest.raises(Throttled, match="after one try"):
            office.clients.graph.find_user(JANE, ())


def test_a_token_that_is_refused_twice_is_a_failure_of_signing_in(office: Office) -> None:
    office.goes_wrong("refuse", times=None, status=401)
    with pytest.raises(SignInFailed, match="refuses the worker's token, and a fresh one too"):
        office.clients.graph.find_user(JANE, ())
    assert len(office.tenant.calls) == 2


def test_a_call_without_token_is_refused_by_the_tenant(office: Office) -> None:
    for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": "Basic x"}):
        assert office.tenant.answer(Request("GET", f"/v1.0/users/{JANE}", headers)).status == 401


def test_a_large_group_comes_in_pages(office: Office) -> None:
    directory = office.tenant.directory
    for number in range(2100):
        name = f"member{number}"
        user = {"displayName": name, "mailNickname": name, "userPrincipalName": f"{name}@contoso.example"}
        directory.groups[LIST].members[directory.add_user(user, is_seeded=True).id] = office.clock.now()
    directory.groups[LIST].members[OMAR] = office.clock.now()
    found = office.run("Test-ExchangeGroupMembership", {"GroupIdentity": "all-staff", "MemberIdentity": "omar"})
    assert found["complete"] is True
    assert len(office.tenant.asked("Get-DistributionGroupMember")) == 3


@pytest.mark.parametrize(
    "link",
    [
        "https://evil.example/adminapi",
        "http://127.0.0.1.evil.example/adminapi",
        "http://127.0.0.1@evil.example/adminapi",
        "http://127.0.0.1:1/adminapi",
        "//evil.example/adminapi",
        "/adminapi/beta",
        "http://[",
        7,
    ],
)
def test_a_page_at_another_address_is_not_followed(office: Office, link: Any) -> None:
    """An attacker who could write such a link would get the token."""
    answer = office.tenant.answer

    def elsewhere(request: Request) -> Answer:
        found = answer(request)
        return Answer(200, {**found.body, "@odata.nextLink": link})

    office.tenant.answer = elsewhere  # type: ignore[method-assign]
    with pytest.raises(UnreadableAnswer, match="Exchange's answer goes on"):
        office.clients.exchange.run("Get-MailUser", {"Identity": JANE})


def test_a_redirect_is_not_followed(office: Office) -> None:
    always(office, Answer(302, {}, {"Location": "https://evil.example/"}))
    with pytest.raises(Rejected):
        office.clients.graph.find_user(JANE, ())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"details": [{"message": "Ex1|Some.Exception|Because."}]}}, "Because."),
        ({"error": {"details": {"message": "Because."}}}, "Because."),
        ({"error": {"innererror": {"internalException": {"message": "Inside."}}, "message": "x"}}, "Inside."),
        ({"error": {"message": "Outside.\nstack"}}, "Outside."),
        ({"error": "text"}, "no reason given"),
        ([], "no reason given"),
        (b"<html>", "no reason given"),
    ],
)
def test_exchanges_reason_is_found_wherever_it_stands(office: Office, body: Any, said: str) -> None:
    always(office, Answer(400, body))
    with pytest.raises(Rejected) as caught:
        office.clients.exchange.run("Set-MailUser", {"Identity": JANE})
    assert caught.value.message == f"Exchange: Set-MailUser: {said} (status 400)"


@pytest.mark.parametrize("body", [{"value": "x"}, {"value": [1]}, [], "x"])
def test_an_answer_of_another_shape_is_unreadable(office: Office, body: Any) -> None:
    always(office, Answer(200, body))
    with pytest.raises(UnreadableAnswer):
        office.clients.exchange.run("Get-MailUser", {"Identity": JANE})
    with pytest.raises(UnreadableAnswer):
        office.clients.graph.is_member(STAFF, JANE)
