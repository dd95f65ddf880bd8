"""Comparing attributes, and recipients that are not what one thinks."""

from typing import Any

import pytest

from matoolkit.worker.clients.failures import InvalidIdentifier, Rejected
from matoolkit.worker.failures import InvalidParameters
from matoolkit.worker.tenant.calls import Answer, Request
from tests.worker.functions.office import ARCHIVE, JANE, MAILBOX, Office


def entra(office: Office, name: str, expected: Any, **more: Any) -> Any:
    given = {"UserId": JANE, "AttributeName": name, "ExpectedValue": expected, **more}
    return office.run("Test-EntraAttributeMatch", given)


def exchange(office: Office, name: str, expected: Any, **more: Any) -> Any:
    given = {"Identity": JANE, "AttributeName": name, "ExpectedValue": expected, **more}
    return office.run("Test-ExchangeAttributeMatch", given)


@pytest.mark.parametrize(
    ("current", "expected", "is_match"),
    [
        ("Sales", "sales", True),
        ("Sales", " Sales ", True),
        ("Sales", "Sale", False),
        (None, None, True),
        (None, "", True),
        (None, "x", False),
        ("", None, True),
        (True, "true", True),
        (True, True, True),
        (False, "true", False),
        (5, "5", True),
        (5, 5.0, True),
    ],
)
@pytest.mark.off_contract
def test_one_value_is_compared_as_text(office: Office, current: Any, expected: Any, is_match: bool) -> None:
    office.user().properties["department"] = current
    assert entra(office, "department", expected)["complete"] is is_match


@pytest.mark.parametrize(
    ("current", "expected", "is_match"),
    [
        (["smtp:a@x.y", "SMTP:b@x.y"], ["smtp:b@x.y", "SMTP:A@x.y"], True),
        (["smtp:a@x.y"], ["smtp:a@x.y", "smtp:b@x.y"], False),
        (["smtp:a@x.y"], "smtp:a@x.y", True),
        (["smtp:a@x.y"], [], True),
        ([], ["smtp:a@x.y"], False),
        (None, ["smtp:a@x.y"], False),
        ("smtp:a@x.y", ["smtp:a@x.y"], True),
    ],
)
@pytest.mark.off_contract
def test_of_several_expected_values_all_have_to_be_there(
    office: Office, current: Any, expected: Any, is_match: bool
) -> None:
    office.user().properties["otherMails"] = current
    found = entra(office, "otherMails", expected, IsMultiValue="true")
    assert found["complete"] is is_match
    assert found["data"]["Match"] is is_match
    assert found["data"]["CurrentValue"] == current


def test_an_attribute_inside_another_can_be_asked_for(office: Office) -> None:
    office.user().properties["onPremisesExtensionAttributes"] = {"extensionAttribute1": "wave-3"}
    for name in (
        "onPremisesExtensionAttributes.extensionAttribute1",
        "onPremisesExtensionAttributes/extensionattribute1",
    ):
        assert entra(office, name, "Wave-3")["complete"] is True
    office.user().properties["onPremisesExtensionAttributes"] = None
    assert entra(office, "onPremisesExtensionAttributes.extensionAttribute1", "wave-3")["complete"] is False


@pytest.mark.off_contract
def test_an_attribute_that_no_user_has_is_a_failure(office: Office) -> None:
    with pytest.raises(Rejected, match="Could not find a property named 'shoeSize'"):
        entra(office, "shoeSize", 42)


@pytest.mark.parametrize("name", ["", "a b", "id,passwordProfile", "a&$expand=b", "a?b", "a/b/c"])
def test_what_is_no_name_of_an_attribute_is_refused(office: Office, name: str) -> None:
    with pytest.raises(InvalidParameters, match="AttributeName is not the name"):
        entra(office, name, "x")
    assert office.tenant.calls == []


@pytest.mark.parametrize("ask", [entra, exchange])
@pytest.mark.parametrize(("expected", "told"), [(["a"], "so IsMultiValue has to be true"), ({"a": 1}, "is a mapping")])
def test_an_expectation_that_can_never_be_met_is_refused(office: Office, ask: Any, expected: Any, told: str) -> None:
    with pytest.raises(InvalidParameters, match=told):
        ask(office, "department", expected)


def test_an_external_address_matches_with_and_without_its_prefix(office: Office) -> None:
    office.run("Set-ExchangeExternalAddress", {"Identity": JANE, "ExternalEmailAddress": "SMTP:jane@source.example"})
    for expected in ("jane@source.example", "SMTP:jane@source.example", "smtp:JANE@source.example"):
        assert exchange(office, "ExternalEmailAddress", expected)["complete"] is True


def test_addresses_in_exchange_are_compared_one_by_one(office: Office) -> None:
    assert exchange(office, "EmailAddresses", ["smtp:jane@contoso.example"], IsMultiValue=True)["complete"] is True
    assert exchange(office, "EmailAddresses", ["smtp:other@contoso.example"], IsMultiValue=True)["complete"] is False
    assert exchange(office, "NoSuchThing", "x")["complete"] is False


def test_w2_a_mail_user_that_has_become_a_mailbox_is_still_served(office: Office) -> None:
    office.user().mail |= {"RecipientTypeDetails": "UserMailbox", "ExchangeGuid": MAILBOX}
    assert office.run("Set-ExchangePrimaryEmail", {"Identity": JANE, "NewPrimaryEmail": "new@contoso.example"}) is True
    assert office.run("Add-ExchangeSecondaryEmail", {"Identity": JANE, "EmailAddress": "x@contoso.example"}) is True
    assert exchange(office, "PrimarySmtpAddress", "new@contoso.example")["complete"] is True
    assert office.run("Set-ExchangeMailUserGuids", {"Identity": JANE, "ExchangeGuid": MAILBOX}) is True
    with pytest.raises(Rejected, match="is a mailbox"):
        office.run("Set-ExchangeMailUserGuids", {"Identity": JANE, "ExchangeGuid": ARCHIVE})


def test_w2_the_primary_address_is_changed_and_no_address_is_lost(office: Office) -> None:
    before = ("SMTP:jane@contoso.example", "smtp:a@contoso.example", "X500:/o=Old/cn=jane", "SIP:jane@contoso.example")
    office.tenant.directory.change_addresses(office.user(), before)
    office.run("Set-ExchangePrimaryEmail", {"Identity": JANE, "NewPrimaryEmail": "SMTP:A@contoso.example"})
    assert office.addresses() == {
        "SMTP:A@contoso.example",
        "smtp:jane@contoso.example",
        "X500:/o=Old/cn=jane",
        "SIP:jane@contoso.example",
    }


def test_an_address_that_is_there_in_another_case_is_not_added(office: Office) -> None:
    for address in ("JANE@contoso.example", "smtp:jane@contoso.example", "SMTP:Jane@contoso.example"):
        assert office.run("Add-ExchangeSecondaryEmail", {"Identity": JANE, "EmailAddress": address}) is True
        assert office.run("Set-ExchangeEmailAddresses", {"Identity": JANE, "EmailAddresses": [address]}) is True
    assert office.tenant.asked("Set-MailUser") == []


@pytest.mark.parametrize("address", ["", "jane", "a b@c.d", "@c.d", "a@", "smtp:", "a\x00@b.c"])
def test_what_is_no_address_is_refused(office: Office, address: str) -> None:
    cases: dict[str, dict[str, Any]] = {
        "Add-ExchangeSecondaryEmail": {"EmailAddress": address},
        "Set-ExchangePrimaryEmail": {"NewPrimaryEmail": address},
        "Set-ExchangeEmailAddresses": {"EmailAddresses": ["good@contoso.example", address]},
        "Set-ExchangeExternalAddress": {"ExternalEmailAddress": address},
    }
    for function, given in cases.items():
        with pytest.raises(InvalidParameters, match="has to be a mail address"):
            office.run(function, {"Identity": JANE, **given})
    assert office.tenant.calls == []


def test_what_is_no_guid_is_refused(office: Office) -> None:
    for value in ("", "x", "{" + MAILBOX, MAILBOX + "0"):
        with pytest.raises(InvalidParameters, match="ExchangeGuid has to be a GUID"):
            office.run("Set-ExchangeMailUserGuids", {"Identity": JANE, "ExchangeGuid": value})


def test_an_identity_that_stands_for_two_is_refused(office: Office) -> None:
    answer = office.tenant.answer

    def twice(request: Request) -> Answer:
        found = answer(request)
        return Answer(200, {"value": found.body["value"] * 2})

    office.tenant.answer = twice  # type: ignore[method-assign]
    with pytest.raises(InvalidIdentifier, match="stands for 2 recipients"):
        office.run("Add-ExchangeSecondaryEmail", {"Identity": "jane", "EmailAddress": "a@b.c"})


def test_a_recipient_is_changed_by_the_id_that_was_read(office: Office) -> None:
    seen: list[Any] = []
    answer = office.tenant.answer

    def note(request: Request) -> Answer:
        seen.append(request.body)
        return answer(request)

    office.tenant.answer = note  # type: ignore[method-assign]
    office.run("Add-ExchangeSecondaryEmail", {"Identity": "jane@contoso.example", "EmailAddress": "a@contoso.example"})
    assert seen[-1]["CmdletInput"]["Parameters"]["Identity"] == office.user().mail["Guid"]
