"""The contract finds what is wrong with a call, and lets pass what is right."""

from typing import Any

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.worker.tenant.calls import Request
from matoolkit.worker.tenant.tenant import Tenant
from tests.calls.checking import CONTRACT, HttpApi, contract, exchange_problems
from tests.calls.extract import written
from tests.calls.watching import watched_tenants

JANE = "/v1.0/users/jane@contoso.example"
GROUP = "/v1.0/groups/22222222-aaaa-4bbb-8ccc-000000000001"
SKU = "22222222-aaaa-4bbb-8ccc-000000000001"
INVOKE = "/adminapi/beta/contoso.example/InvokeCommand"
NEW_USER = {"displayName": "Jane", "accountEnabled": True, "passwordProfile": {"password": "x"}}


def graph(method: str, target: str, body: Any = None, answer: Any = None) -> list[str]:
    return list(HttpApi("graph").problems(method, target, body, 200, answer))


def exchange(cmdlet: str, parameters: dict[str, Any], *rows: dict[str, Any]) -> list[str]:
    body = {"CmdletInput": {"CmdletName": cmdlet, "Parameters": parameters}}
    return list(exchange_problems("POST", INVOKE, body, 200, {"value": list(rows)}))


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("GET", f"{JANE}?$select=id,proxyAddresses,onPremisesExtensionAttributes", None),
        ("POST", "/v1.0/users", NEW_USER),
        ("PATCH", JANE, {"usageLocation": "DE", "otherMails": ["a@b.c"], "department": None}),
        ("DELETE", JANE, None),
        ("POST", f"{GROUP}/members/$ref", {"@odata.id": "https://graph.microsoft.com/v1.0/directoryObjects/1"}),
        ("POST", f"{JANE}/checkMemberGroups", {"groupIds": ["22222222-aaaa-4bbb-8ccc-000000000001"]}),
        ("POST", f"{JANE}/assignLicense", {"addLicenses": [{"skuId": SKU}], "removeLicenses": []}),
        ("POST", f"{JANE}/authentication/temporaryAccessPassMethods", {"lifetimeInMinutes": 60, "isUsableOnce": True}),
        ("POST", f"{JANE}/revokeSignInSessions", None),
        ("PUT", f"{JANE}/manager/$ref", {"@odata.id": "https://graph.microsoft.com/v1.0/users/1"}),
        ("POST", f"{JANE}/sendMail", {"message": {"subject": "x", "toRecipients": []}, "saveToSentItems": False}),
        ("POST", "/beta/users/1/convertExternalToInternalMemberUser", {"userPrincipalName": "jane@contoso.example"}),
    ],
)
def test_calls_that_graph_has_pass(method: str, target: str, body: Any) -> None:
    assert graph(method, target, body) == []


@pytest.mark.parametrize(
    ("method", "target", "body", "problem"),
    [
        ("GET", "/v1.0/persons/1", None, "the contract has no such call"),
        ("PUT", JANE, {}, "the contract has no such call"),
        ("DELETE", f"{GROUP}/members/1", None, "the contract has no such call"),
        ("GET", "/beta/users/1", None, "the contract has no such call"),
        ("GET", "/v1.0/users/", None, "the contract has no such call"),
        ("GET", f"{JANE}?$top=1", None, "the query option $top does not exist"),
        ("PATCH", f"{JANE}?$select=id", {"city": "x"}, "the query option $select does not exist"),
        ("GET", f"{JANE}?$select=id,shoeSize", None, "shoeSize cannot be selected: User has no such property"),
        ("PATCH", JANE, {"shoeSize": 43}, "shoeSize does not exist: User has no such property"),
        ("PATCH", JANE, {"DisplayName": "Jane"}, "DisplayName does not exist"),
        ("PATCH", JANE, {"accountEnabled": "yes"}, "accountEnabled is no Boolean"),
        ("PATCH", JANE, {"otherMails": "a@b.c"}, "otherMails is not a list"),
        ("PATCH", JANE, {"employeeHireDate": "tomorrow"}, "employeeHireDate is no DateTime"),
        ("POST", "/v1.0/users", {"passwordProfile": {"pwd": "x"}}, "passwordProfile.pwd does not exist"),
        ("POST", "/v1.0/users", {"passwordProfile": "x"}, "passwordProfile is no object"),
        ("POST", f"{JANE}/assignLicense", {"removeLicenses": ["E5"]}, "removeLicenses[] is no Guid"),
        ("POST", f"{JANE}/sendMail", {"message": {"importance": "huge"}}, "message.importance is 'huge'"),
        ("POST", f"{JANE}/revokeSignInSessions", {"now": True}, "the call takes no body"),
        ("POST", "/v1.0/users", None, "the call needs a body"),
    ],
)
def test_calls_that_graph_does_not_have_are_found(method: str, target: str, body: Any, problem: str) -> None:
    (found,) = graph(method, target, body)
    assert problem in found
    assert "add it to tests/calls/wanted.py" in found


@pytest.mark.parametrize(
    ("target", "answer", "problem"),
    [
        (JANE, {"id": "1", "shoeSize": 43}, "in the answer shoeSize does not exist"),
        (f"{JANE}?$select=mail", {"mail": 7}, "in the answer mail is no String"),
        (f"{JANE}?$select=mail", {"id": "1", "mail": None, "city": "x"}, "there is city, and nobody selected it"),
        (
            JANE,
            {"id": "1", "mailNickname": "jane"},
            "there is mailNickname, and it is not among the default properties",
        ),
        (
            "/v1.0/directory/deletedItems/1",
            {"@odata.type": "#microsoft.graph.user", "x": 1},
            "User has no such property",
        ),
        (
            "/v1.0/subscribedSkus",
            {"value": [{"skuId": "22222222-aaaa-4bbb-8ccc-000000000001", "seats": 1}]},
            "value[].seats",
        ),
    ],
)
def test_answers_that_graph_cannot_give_are_found(target: str, answer: Any, problem: str) -> None:
    assert problem in " ".join(graph("GET", target, answer=answer))


def test_an_error_is_no_answer_to_compare() -> None:
    assert list(HttpApi("graph").problems("GET", JANE, None, 404, {"error": {"code": "x"}})) == []


@pytest.mark.parametrize(
    ("cmdlet", "parameters"),
    [
        ("Get-Mailbox", {"Identity": "jane"}),
        ("Set-MailUser", {"Identity": "jane", "ExchangeGuid": "22222222-aaaa-4bbb-8ccc-000000000001"}),
        (
            "Set-MailUser",
            {"Identity": "x", "EmailAddresses": {"@odata.type": "#Exchange.GenericHashTable", "Add": "x500:y"}},
        ),
        ("Set-Mailbox", {"Identity": "jane", "ForwardingSmtpAddress": None, "DeliverToMailboxAndForward": False}),
        (
            "New-MailUser",
            {"Name": "x", "ExternalEmailAddress": "x@y.z", "MicrosoftOnlineServicesID": "x@y.z", "Password": "secret"},
        ),
        (
            "New-MoveRequest",
            {"Identity": "x", "Remote": True, "SourceEndpoint": "e", "TargetDeliveryDomain": "contoso.example"},
        ),
        ("Add-DistributionGroupMember", {"Identity": "staff", "Member": "jane"}),
    ],
)
def test_cmdlets_that_exchange_online_has_pass(cmdlet: str, parameters: dict[str, Any]) -> None:
    assert exchange(cmdlet, parameters) == []


@pytest.mark.parametrize(
    ("cmdlet", "parameters", "problem"),
    [
        ("Enable-MailUser", {"Identity": "jane"}, "has no such cmdlet in Exchange Online"),
        ("Set-Mailbox", {"Identity": "jane", "ExchangeGuid": "x"}, "there is no parameter ExchangeGuid"),
        ("Set-MailUser", {"ExchangeGuid": "22222222-aaaa-4bbb-8ccc-000000000001"}, "it needs Identity too"),
        ("Set-MailUser", {"Identity": "jane", "ExchangeGuid": "x"}, "ExchangeGuid is no Guid"),
        ("Set-MailUser", {"Identity": "jane", "EmailAddresses": {"Add": "x@y.z"}}, "EmailAddresses is no ProxyAddress"),
        (
            "New-MailUser",
            {"Name": "x", "ExternalEmailAddress": "y", "Password": "z"},
            "it needs MicrosoftOnlineServicesID",
        ),
        (
            "New-MoveRequest",
            {"Identity": "x", "Remote": "true", "TargetDeliveryDomain": "y"},
            "Remote is no SwitchParameter",
        ),
        ("New-MoveRequest", {"Identity": "x", "Remote": True, "Outbound": True}, "no set of parameters has"),
    ],
)
def test_cmdlets_that_exchange_online_does_not_have_are_found(
    cmdlet: str, parameters: dict[str, Any], problem: str
) -> None:
    assert problem in exchange(cmdlet, parameters)[0]


def test_answers_that_exchange_cannot_give_are_found() -> None:
    assert exchange("Get-MailUser", {"Identity": "x"}, {"Guid": "1", "Shoes": 2})[0].startswith(
        "Get-MailUser: in the answer Shoes does not exist"
    )


def test_a_body_that_is_no_command_is_found() -> None:
    assert "no InvokeCommand" in next(exchange_problems("POST", INVOKE, {"CmdletName": "Get-Mailbox"}, 200, None))


@pytest.mark.off_contract
def test_what_a_tenant_is_asked_in_a_test_is_watched(clock: VirtualClock) -> None:
    with watched_tenants() as problems:
        Tenant(clock).answer(Request("GET", "/v1.0/persons/1"))
        Tenant(clock).answer(Request("GET", "/_tenant/users"))
    assert len(problems) == 1


def test_the_contract_is_as_the_extraction_writes_it_and_says_where_it_comes_from() -> None:
    assert written(contract()) == CONTRACT.read_text(encoding="utf-8")
    for name, origin in contract()["origin"].items():
        assert origin["from"], name
        assert origin["licence"], name
