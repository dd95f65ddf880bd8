"""The simulated tenant itself: what it knows, what it refuses, how it is looked at and controlled (rule W9)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from matoolkit.clock import VirtualClock
from matoolkit.errors import UnreadableFile
from matoolkit.hosting.tenant import fill
from matoolkit.worker.tenant import StateFile, Tenant, TenantServer
from matoolkit.worker.tenant.calls import Answer, Request
from tests.databases import NOON

JANE = {
    "id": "11111111-aaaa-4bbb-8ccc-000000000001",
    "displayName": "Jane",
    "mailNickname": "jane",
    "userPrincipalName": "jane@contoso.example",
    "exchange": {"RecipientTypeDetails": "MailUser"},
}
NEW: dict[str, Any] = {
    "displayName": "New",
    "mailNickname": "new",
    "userPrincipalName": "new@contoso.example",
    "accountEnabled": True,
    "passwordProfile": {"password": "Secret-Pass-1", "forceChangePasswordNextSignIn": True},
}
SIGNED_IN = {"Authorization": "Bearer x"}
MAILBOX = "33333333-aaaa-4bbb-8ccc-000000000001"
STAFF = "22222222-aaaa-4bbb-8ccc-000000000001"
INVITATION = {"invitedUserEmailAddress": "new@fabrikam.example", "inviteRedirectUrl": "https://fabrikam.example"}


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOON)


@pytest.fixture
def tenant(clock: VirtualClock) -> Tenant:
    tenant = Tenant(clock)
    tenant.directory.add_user(JANE, is_seeded=True)
    tenant.directory.add_group("staff", STAFF)
    return tenant


@pytest.fixture
def http(tenant: Tenant) -> Iterator[httpx.Client]:
    with TenantServer(tenant) as server, httpx.Client(base_url=server.url, trust_env=False) as http:
        yield http


def graph(tenant: Tenant, method: str, target: str, body: Any = None) -> Answer:
    return tenant.answer(Request(method, target, SIGNED_IN, body))


def cmdlet(tenant: Tenant, name: str, **parameters: Any) -> Answer:
    headers = {**SIGNED_IN, "X-AnchorMailbox": "x", "X-CmdletName": name}
    body = {"CmdletInput": {"CmdletName": name, "Parameters": parameters}}
    return tenant.answer(Request("POST", "/adminapi/beta/contoso.example/InvokeCommand", headers, body))


def test_a_user_is_created_without_its_password_being_kept(tenant: Tenant) -> None:
    made = graph(tenant, "POST", "/v1.0/users", NEW)
    assert made.status == 201
    assert made.body["userPrincipalName"] == "new@contoso.example"
    assert "Secret-Pass-1" not in repr(tenant.directory.users) + repr(made) + repr(tenant.calls)


@pytest.mark.parametrize(
    ("change", "status", "code", "detail"),
    [
        ({"userPrincipalName": "jane@contoso.example"}, 400, "Request_BadRequest", "ObjectConflict"),
        ({"userPrincipalName": "no upn"}, 400, "Request_BadRequest", "InvalidValue"),
        ({"passwordProfile": {"password": "simple"}}, 400, "Request_BadRequest", "InvalidValue"),
        ({"displayName": None}, 400, "Request_BadRequest", "InvalidValue"),
        ({"shoeSize": 42}, 400, "Request_BadRequest", "InvalidValue"),
    ],
)
@pytest.mark.off_contract
def test_a_user_that_cannot_be_is_refused_in_graphs_words(
    tenant: Tenant, change: dict[str, Any], status: int, code: str, detail: str
) -> None:
    refused = graph(tenant, "POST", "/v1.0/users", {**NEW, **change})
    assert refused.status == status
    assert refused.body["error"]["code"] == code
    assert refused.body["error"]["details"][0]["code"] == detail
    assert refused.body["error"]["details"][0]["target"] == next(iter(change))
    assert set(refused.body["error"]["innerError"]) == {"date", "request-id", "client-request-id"}


def test_what_graph_does_not_find_is_all_the_same_to_it(tenant: Tenant) -> None:
    group = "/v1.0/groups/22222222-aaaa-4bbb-8ccc-000000000001"
    for target in (f"/v1.0/groups/nothing/members/{JANE['id']}/$ref", f"{group}/members/{JANE['id']}/$ref"):
        refused = graph(tenant, "DELETE", target)
        assert (refused.status, refused.body["error"]["code"]) == (404, "Request_ResourceNotFound")


@pytest.mark.off_contract
def test_a_path_that_graph_does_not_have_is_refused(tenant: Tenant) -> None:
    assert graph(tenant, "GET", "/v1.0/nothing").body["error"]["code"] == "BadRequest"
    assert graph(tenant, "POST", "/v1.0/users", ["x"]).status == 400


def test_w9_a_new_user_is_not_seen_for_a_while(tenant: Tenant, clock: VirtualClock) -> None:
    tenant.directory.lags.graph = 10
    made = graph(tenant, "POST", "/v1.0/users", NEW).body
    assert graph(tenant, "GET", f"/v1.0/users/{made['id']}").status == 404
    assert graph(tenant, "POST", "/v1.0/users", NEW).status == 400, "the name is taken at once"
    clock.sleep(10)
    assert graph(tenant, "GET", f"/v1.0/users/{made['id']}").status == 200


def test_w9_graph_sees_what_exchange_wrote_after_a_while(tenant: Tenant, clock: VirtualClock) -> None:
    tenant.directory.lags.sync = 300
    added = {"@odata.type": "#Exchange.GenericHashTable", "Add": "smtp:j@contoso.example"}
    assert cmdlet(tenant, "Set-MailUser", Identity="jane", EmailAddresses=added).status == 200
    assert len(cmdlet(tenant, "Get-MailUser", Identity="jane").body["value"][0]["EmailAddresses"]) == 2
    target = f"/v1.0/users/{JANE['id']}?$select=proxyAddresses,mail"
    assert graph(tenant, "GET", target).body == {
        "proxyAddresses": ["SMTP:jane@contoso.example"],
        "mail": "jane@contoso.example",
    }
    clock.sleep(300)
    assert len(graph(tenant, "GET", target).body["proxyAddresses"]) == 2


@pytest.mark.parametrize(
    ("parameters", "exception"),
    [
        ({"Identity": "nobody"}, "ManagementObjectNotFoundException"),
        ({"Identity": "jane", "EmailAddresses": ["smtp:x@contoso.example"]}, "ParameterBindingException"),
        ({"Identity": "jane", "EmailAddresses": ["SMTP:x@elsewhere.example"]}, "NotAcceptedDomainException"),
        ({"Identity": "jane", "EmailAddresses": "x"}, "ParameterBindingException"),
        ({"Identity": "jane", "ExchangeGuid": "x"}, "ParameterBindingException"),
        ({"Identity": "jane", "Shoes": "x"}, "ParameterBindingException"),
    ],
)
@pytest.mark.off_contract
def test_exchange_tells_errors_in_the_details(tenant: Tenant, parameters: dict[str, Any], exception: str) -> None:
    refused = cmdlet(tenant, "Set-MailUser", **parameters)
    assert refused.body["error"]["message"] == "Error executing cmdlet"
    assert exception in refused.body["error"]["details"][0]["message"]


@pytest.mark.off_contract
def test_exchange_wants_its_headers_and_knows_its_cmdlets(tenant: Tenant) -> None:
    body = {"CmdletInput": {"CmdletName": "Get-MailUser", "Parameters": {"Identity": "jane"}}}
    assert tenant.answer(Request("POST", "/adminapi/beta/contoso.example/InvokeCommand", SIGNED_IN, body)).status == 400
    for _ in range(2):
        forbidden = cmdlet(tenant, "Remove-Everything")
        assert (forbidden.status, forbidden.body[:4]) == (403, b"\x00" * 4)
    assert tenant.answer(Request("POST", "/adminapi/beta/contoso.example/InvokeCommand", SIGNED_IN, {})).status == 400
    assert cmdlet(tenant, "Set-Mailbox", Identity="jane", ExchangeGuid="x").status == 400


def test_w9_a_limit_lets_so_many_calls_through(tenant: Tenant, clock: VirtualClock, http: httpx.Client) -> None:
    http.post("/_tenant/faults", json={"kind": "limit", "calls": 3, "seconds": 150})
    target = f"/v1.0/users/{JANE['id']}"
    assert [graph(tenant, "GET", target).status for _ in range(4)] == [200, 200, 200, 429]
    assert graph(tenant, "GET", target).headers["Retry-After"] == "150"
    clock.sleep(150)
    assert graph(tenant, "GET", target).status == 200


def test_w9_a_fault_may_last_for_a_time(tenant: Tenant, clock: VirtualClock, http: httpx.Client) -> None:
    http.post("/_tenant/faults", json={"kind": "throttle", "match": "/v1.0/", "for_seconds": 60, "retry_after": 5})
    target = f"/v1.0/users/{JANE['id']}"
    assert [graph(tenant, "GET", target).status for _ in range(9)] == [429] * 9
    assert cmdlet(tenant, "Get-MailUser", Identity="jane").status == 200
    clock.sleep(60)
    assert graph(tenant, "GET", target).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "["},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Origin": "http://["},
    ],
)
def test_w9_no_web_page_controls_the_tenant(http: httpx.Client, headers: dict[str, str]) -> None:
    for path in ("/_tenant/users", "/v1.0/users"):
        answer = http.post(path, json=[{"displayName": "Mallory"}], headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (421, "MisdirectedRequest")
    there = http.get("/_tenant/users", headers={"Origin": str(http.base_url).rstrip("/")}).json()
    assert "Mallory" not in [user["displayName"] for user in there]


def test_w9_the_tenant_can_be_filled_and_looked_at(http: httpx.Client) -> None:
    made = http.post("/_tenant/users", json=[{"displayName": "A", "userPrincipalName": "a@contoso.example"}]).json()
    http.post("/_tenant/groups", json={"displayName": "cloud", "members": [made[0]["id"]]})
    users = {one["displayName"]: one for one in http.get("/_tenant/users").json()}
    groups = {one["displayName"]: one for one in http.get("/_tenant/groups").json()}
    assert users["A"]["groups"] == [groups["cloud"]["id"]]
    assert users["A"]["emailAddresses"] == [], "an account is no recipient"
    assert http.get("/_tenant/deleted-users").json() == []
    assert http.get("/_tenant/invitations").json() == []


def test_w9_lags_faults_and_tokens_are_controlled_over_http(http: httpx.Client) -> None:
    assert http.post("/_tenant/lags", json={"graph": 5}).json() == {"graph": 5, "exchange": 20, "sync": 10, "move": 60}
    shown = http.post("/_tenant/faults", json={"kind": "fail", "status": 500}).json()
    assert shown[0]["kind"] == "fail"
    assert http.get(f"/v1.0/users/{JANE['id']}", headers=SIGNED_IN).status_code == 500
    assert http.delete("/_tenant/faults").json() == []
    assert http.get(f"/v1.0/users/{JANE['id']}", headers=SIGNED_IN).status_code == 200
    http.post("/_tenant/expire-tokens")
    assert http.get(f"/v1.0/users/{JANE['id']}", headers=SIGNED_IN).status_code == 401
    assert http.get(f"/v1.0/users/{JANE['id']}", headers={"Authorization": "Bearer y"}).status_code == 200
    assert [one["status"] for one in http.get("/_tenant/calls").json()] == [500, 200, 401, 200]


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("faults", {"kind": "typo"}, "kinds are throttle, busy"),
        ("faults", {"kind": "fail", "tims": 3}, "cannot read tims"),
        ("faults", "x", "cannot be done"),
        ("lags", {"graf": 3}, "there is no lag 'graf'"),
        ("lags", {"graph": "long"}, "cannot be done"),
        ("users", {"displayName": "x"}, "userPrincipalName"),
        ("groups", {}, "displayName"),
    ],
)
def test_what_cannot_be_read_is_refused_with_words(http: httpx.Client, path: str, body: Any, told: str) -> None:
    refused = http.post(f"/_tenant/{path}", json=body)
    assert refused.status_code == 400
    assert told in refused.json()["error"]


def test_what_does_not_exist_is_answered_with_what_does(http: httpx.Client) -> None:
    refused = http.get("/_tenant/usrs")
    assert refused.status_code == 404
    assert "GET /_tenant/users" in refused.json()["known"]


def test_what_is_no_json_is_refused(http: httpx.Client) -> None:
    assert http.post("/v1.0/users", content=b"{", headers=SIGNED_IN).status_code == 400


def test_the_tenant_is_served_on_this_machine_only(tenant: Tenant) -> None:
    server = TenantServer(tenant)
    assert server.url.startswith("http://127.0.0.1:")
    with server:
        assert httpx.get(f"{server.url}/_tenant/users", trust_env=False).status_code == 200


def test_w9_what_was_answered_is_there_in_a_tenant_that_begins_with_the_same_file(
    clock: VirtualClock, tmp_path: Path
) -> None:
    path = tmp_path / "tenant.json"
    before = Tenant(clock, StateFile(path))
    assert before.is_new
    before.answer(Request("POST", "/_tenant/users", body=JANE))
    before.answer(
        Request("POST", "/_tenant/groups", body={"displayName": "staff", "id": STAFF, "members": [JANE["id"]]})
    )
    before.answer(Request("POST", "/_tenant/lags", body={"sync": 3, "graph": 0, "exchange": 0}))
    before.answer(Request("POST", "/_tenant/domains", body=["fabrikam.example"]))
    before.answer(Request("POST", "/_tenant/applications", body={"id": "a", "displayName": "A"}))
    cmdlet(before, "Set-MailUser", Identity="jane", ExchangeGuid=MAILBOX)
    moved = cmdlet(
        before,
        "New-MoveRequest",
        Identity="jane",
        Remote=True,
        SourceEndpoint="source",
        TargetDeliveryDomain="contoso.example",
    )
    assert moved.status == 200
    made = graph(before, "POST", "/v1.0/users", {**NEW, "mail": "new@fabrikam.example"}).body["id"]
    graph(before, "PATCH", f"/v1.0/users/{JANE['id']}", {"displayName": "Jane II"})
    assert graph(before, "POST", "/v1.0/invitations", {**INVITATION, "invitedUser": {"id": made}}).status == 201
    graph(before, "DELETE", f"/v1.0/users/{made}")
    # Nobody said goodbye: this is what is left of a process that was killed.
    after = Tenant(clock, StateFile(path))
    assert not after.is_new
    for part in ("users", "deleted-users", "groups", "invitations", "lags", "domains", "moves"):
        look = Request("GET", f"/_tenant/{part}")
        assert after.answer(look).body == before.answer(look).body
    assert graph(after, "GET", "/v1.0/users/jane@contoso.example").body["displayName"] == "Jane II"
    assert cmdlet(after, "Get-Recipient", Identity="jane@contoso.example").status == 200
    taken = graph(after, "POST", "/v1.0/users", {**NEW, "userPrincipalName": "jane@contoso.example"})
    assert taken.status == 400


@pytest.mark.off_contract
def test_a_change_that_is_refused_half_way_is_kept_as_far_as_it_came(clock: VirtualClock, tmp_path: Path) -> None:
    before = Tenant(clock, StateFile(tmp_path / "tenant.json"))
    before.answer(Request("POST", "/_tenant/users", body=JANE))
    half = cmdlet(before, "Set-MailUser", Identity=JANE["id"], ExchangeGuid=MAILBOX, EmailAddresses="nonsense")
    assert half.status == 400
    after = Tenant(clock, StateFile(tmp_path / "tenant.json"))
    assert after.directory.users == before.directory.users


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"lags": {"graf": 1}}'])
def test_a_file_that_is_no_state_is_refused_and_left_alone(clock: VirtualClock, tmp_path: Path, content: str) -> None:
    path = tmp_path / "tenant.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UnreadableFile, match="not the state of a tenant"):
        Tenant(clock, StateFile(path))
    assert path.read_text(encoding="utf-8") == content


def test_a_seed_that_is_refused_half_way_leaves_nothing_behind(clock: VirtualClock, tmp_path: Path) -> None:
    state = StateFile(tmp_path / "tenant.json")
    tenant = Tenant(clock, state)
    with pytest.raises(ValueError, match="groups"):
        fill(tenant, {"users": [{"userPrincipalName": "ada@fabrikam.com"}], "groups": "none"})
    assert Tenant(clock, StateFile(tmp_path / "tenant.json")).is_new
