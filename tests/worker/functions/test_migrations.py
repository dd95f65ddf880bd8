"""Mailboxes, licences, groups, passes and mail, in the cases that only they have."""

from datetime import timedelta
from typing import Any

import pytest

from matoolkit.worker.clients.failures import ObjectMissing, Rejected
from matoolkit.worker.failures import InvalidParameters
from matoolkit.worker.tenant.directory import Lags
from matoolkit.worker.tenant.licences import E3, ENTRA_P1
from tests.worker.functions.migration_cases import (
    MOVE,
    POSTMASTER,
    jane_has_a_mailbox,
    jane_is_ready_to_move,
    janes_mailbox_is_copied,
    omar_sends_mail,
)
from tests.worker.functions.office import ARCHIVE, JANE, LIST, MAILBOX, OMAR, Office
from tests.worker.functions.situations import NEW_USER


def test_w2_a_mailbox_moves_from_the_first_call_to_the_last(office: Office) -> None:
    jane_is_ready_to_move(office)
    office.tenant.directory.lags.move = 600
    assert office.run("Start-MailboxMove", MOVE)["Status"] == "InProgress"
    assert office.run("Test-MailboxMove", {"TargetUser": JANE})["complete"] is False
    office.clock.sleep(600)
    assert office.run("Test-MailboxMove", {"TargetUser": JANE})["complete"] is True
    assert office.run("Test-MailboxMove", {"TargetUser": JANE, "Until": "Completed"})["complete"] is False
    office.clock.sleep(30 * 24 * 3600)
    assert office.user().kind == "MailUser", "it is held until somebody completes it"
    assert office.run("Complete-MailboxMove", {"TargetUser": JANE}) is True
    assert office.run("Test-MailboxMove", {"TargetUser": JANE, "Until": "completed"})["complete"] is True
    assert office.user().kind == "UserMailbox"
    assert office.user().mail["ExchangeGuid"] == MAILBOX
    with pytest.raises(Rejected, match="has moved"):
        office.run("Undo-MailboxMove", {"UserPrincipalName": JANE})
    # Exchange forgets a request that is done; the mailbox is what says that it is.
    office.tenant.directory.moves.clear()
    assert office.run("Start-MailboxMove", MOVE)["Status"] == "Completed"
    assert office.run("Complete-MailboxMove", {"TargetUser": JANE}) is True
    assert office.run("Test-MailboxMove", {"TargetUser": JANE, "Until": "Completed"})["complete"] is True


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda office: office.tenant.directory.remote_mailboxes.clear(), "there is no mailbox"),
        (
            lambda office: office.tenant.directory.change_addresses(office.user(), ("SMTP:jane@contoso.example",)),
            "X500",
        ),
        (lambda office: office.tenant.directory.remote_mailboxes[MAILBOX].update(ArchiveGuid=ARCHIVE), "ArchiveGuid"),
        (lambda office: office.user().mail.update(ExternalEmailAddress=None), "no external address"),
        (
            lambda office: office.tenant.directory.change_addresses(
                office.user(), (*office.user().current, "smtp:jane@source.example")
            ),
            "isn't of an accepted domain",
        ),
    ],
)
def test_a_move_that_failed_says_why_and_can_be_begun_anew(office: Office, spoil: Any, why: str) -> None:
    jane_is_ready_to_move(office)
    spoil(office)
    office.run("Start-MailboxMove", MOVE)
    with pytest.raises(Rejected, match=why):
        office.run("Test-MailboxMove", {"TargetUser": JANE})
    jane_is_ready_to_move(office)
    assert office.run("Start-MailboxMove", MOVE)["Status"] == "Synced"


def test_what_no_mailbox_can_move_to_is_refused_at_once(office: Office) -> None:
    with pytest.raises(Rejected, match="doesn't have an ExchangeGuid"):
        office.run("Start-MailboxMove", MOVE)
    jane_is_ready_to_move(office)
    with pytest.raises(Rejected, match="endpoint 'elsewhere'"):
        office.run("Start-MailboxMove", {**MOVE, "SourceEndpoint": "elsewhere"})
    with pytest.raises(Rejected, match="has no address in the domain"):
        office.run("Start-MailboxMove", {**MOVE, "TargetDeliveryDomain": "source.example"})
    with pytest.raises(InvalidParameters, match="Until has to be Synced or Completed"):
        office.run("Test-MailboxMove", {"TargetUser": JANE, "Until": "Tuesday"})
    with pytest.raises(ObjectMissing, match="there is no move"):
        office.run("Complete-MailboxMove", {"TargetUser": JANE})
    assert office.run("Undo-MailboxMove", {"UserPrincipalName": JANE}) is True


def test_w2_a_mail_user_is_made_to_which_a_mailbox_can_move(office: Office) -> None:
    """The whole way, with the lags that a tenant has."""
    office.tenant.directory.lags = Lags()
    upn = NEW_USER["UserPrincipalName"]
    given = {**NEW_USER, "ExternalEmailAddress": "new.person@source.example", "PrimaryEmail": "new@contoso.example"}
    made = office.run("New-ExchangeMailUser", {**given, "FirstName": "New", "LastName": "Person"})
    assert made["PrimaryEmail"] == "new@contoso.example"
    office.run("Set-ExchangeMailUserGuids", {"Identity": upn, "ExchangeGuid": MAILBOX, "ArchiveGuid": ARCHIVE})
    office.run("Set-ExchangeEmailAddresses", {"Identity": upn, "EmailAddresses": ["X500:/o=Source/cn=new", upn]})
    office.run("Add-EntraUserLicense", {"UserId": upn, "SkuId": E3, "UsageLocation": "DE"})
    remote = {"LegacyExchangeDN": "/o=Source/cn=new", "ArchiveGuid": ARCHIVE}
    office.tenant.directory.remote_mailboxes[MAILBOX] = remote
    office.run("Start-MailboxMove", {**MOVE, "TargetUser": upn})
    office.run("Complete-MailboxMove", {"TargetUser": upn})
    office.clock.sleep(60)
    assert office.run("Test-MailboxMove", {"TargetUser": upn, "Until": "Completed"})["complete"] is True
    wanted = {"AttributeName": "RecipientTypeDetails", "ExpectedValue": "UserMailbox"}
    assert office.run("Test-ExchangeAttributeMatch", {"Identity": upn, **wanted})["complete"] is True


def test_two_people_of_the_same_name_can_both_be_mail_users(office: Office) -> None:
    for number in (1, 2):
        given = {"DisplayName": "John Smith", "MailNickname": f"john{number}"}
        addresses = {
            "UserPrincipalName": f"john{number}@contoso.example",
            "ExternalEmailAddress": f"john{number}@source.example",
        }
        assert office.run("New-ExchangeMailUser", {**given, **addresses})["Created"] is True


def test_an_account_in_the_way_of_a_mail_user_is_told_in_plain_words(office: Office) -> None:
    office.run("New-EntraUser", NEW_USER)
    with pytest.raises(Rejected, match="that is not a mail user; Exchange cannot make a mail user of it"):
        office.run("New-ExchangeMailUser", {**NEW_USER, "ExternalEmailAddress": "new.person@source.example"})
    assert office.tenant.asked("New-MailUser") == []


def test_an_external_address_that_became_the_primary_one_needs_another_primary(office: Office) -> None:
    office.user().mail["ExternalEmailAddress"] = "SMTP:jane@source.example"
    office.tenant.directory.change_addresses(office.user(), ("SMTP:jane@source.example",))
    given = {"Identity": JANE, "ExternalEmailAddress": "jane@source.example"}
    with pytest.raises(Rejected, match="give PrimaryEmail"):
        office.run("Set-ExchangeExternalAddress", given)
    assert office.run("Set-ExchangeExternalAddress", {**given, "PrimaryEmail": "jane@contoso.example"}) is True
    assert office.addresses() == {"SMTP:jane@contoso.example"}


def test_the_primary_address_is_not_taken_away(office: Office) -> None:
    with pytest.raises(Rejected, match="is the primary address"):
        office.run("Remove-ExchangeEmailAddress", {"Identity": JANE, "EmailAddress": "jane@contoso.example"})


def test_a_mail_user_is_no_mailbox_to_read(office: Office) -> None:
    with pytest.raises(ObjectMissing, match=f"there is no mailbox {JANE}"):
        office.run("Get-MailboxInfo", {"UserId": JANE})
    assert office.run("Remove-MailForwarding", {"UserPrincipalName": JANE}) is True
    jane_has_a_mailbox(office)
    office.user().mail["ArchiveGuid"] = ARCHIVE
    assert office.run("Get-MailboxInfo", {"UserId": JANE})["ArchiveGuid"] == ARCHIVE


def test_a_licence_needs_to_know_where_it_is_used(office: Office) -> None:
    with pytest.raises(Rejected, match="has no usage location"):
        office.run("Add-EntraUserLicense", {"UserId": JANE, "SkuId": E3})
    office.run("Add-EntraUserLicense", {"UserId": JANE, "SkuId": ENTRA_P1, "UsageLocation": "DE"})
    office.run("Add-EntraUserLicense", {"UserId": JANE, "SkuId": ENTRA_P1, "UsageLocation": "FR"})
    assert office.user().properties["usageLocation"] == "DE"


def test_licences_that_are_used_up_are_told(office: Office) -> None:
    for number in range(5):
        person = {"displayName": "x", "userPrincipalName": f"x{number}@contoso.example", "usageLocation": "DE"}
        office.tenant.directory.add_user(person, is_seeded=True).licences[ENTRA_P1] = []
    with pytest.raises(Rejected, match="does not have any available licenses"):
        office.run("Add-EntraUserLicense", {"UserId": JANE, "SkuId": ENTRA_P1, "UsageLocation": "DE"})
    found = office.run("Test-MigrationCapacity", {"SkuId": ENTRA_P1, "Needed": "1"})
    assert (found["complete"], found["data"]["Available"]) == (False, 0)


def test_a_licence_through_a_group_counts(office: Office) -> None:
    office.user().mail["ExchangeGuid"] = MAILBOX
    group = office.tenant.directory.add_group("licences", licences=[E3])
    office.run("Add-EntraGroupMember", {"GroupId": group.id, "UserId": JANE})
    assert office.run("Test-EntraUserLicense", {"UserId": JANE, "SkuId": E3})["complete"] is True
    with pytest.raises(Rejected, match="does not have a corresponding license"):
        office.run("Remove-EntraUserLicense", {"UserId": JANE, "SkuId": E3})


def test_a_list_that_is_missing_is_told_at_once(office: Office) -> None:
    for function in ("Add-ExchangeGroupMember", "Remove-ExchangeGroupMember"):
        with pytest.raises(ObjectMissing, match="there is no distribution list or mail-enabled security group nobodys"):
            office.run(function, {"GroupIdentity": "nobodys", "MemberIdentity": JANE})
    assert office.seconds() == 0
    assert JANE not in office.tenant.directory.groups[LIST].members


def test_w2_a_pass_that_was_not_mailed_is_replaced(office: Office) -> None:
    omar_sends_mail(office)
    given = {"UserId": JANE, "Sender": POSTMASTER, "Recipients": ["jane@home.example"]}
    office.goes_wrong("refuse", "sendMail", status=400, code="ErrorX")
    with pytest.raises(Rejected):
        office.run("New-EntraTemporaryAccessPass", given)
    (first,) = office.user().passes
    made = office.run("New-EntraTemporaryAccessPass", given)
    assert made["Id"] != first["id"]
    assert made == office.run("New-EntraTemporaryAccessPass", given)
    assert len(office.user(OMAR).sent) == 1
    assert any(one.startswith("+") for one in office.secrets.values), "the pass is masked wherever it turns up"
    with pytest.raises(InvalidParameters, match="from 10 to 43,200"):
        office.run("New-EntraTemporaryAccessPass", {**given, "LifetimeInMinutes": 5})


def test_w2_a_pass_that_was_mailed_stays_until_it_is_over(office: Office) -> None:
    omar_sends_mail(office)
    starts = office.clock.now() + timedelta(hours=2)
    given = {
        "UserId": JANE,
        "Sender": POSTMASTER,
        "Recipients": ["jane@home.example"],
        "StartDateTime": f"{starts:%Y-%m-%dT%H:%M:%SZ}",
    }
    made = office.run("New-EntraTemporaryAccessPass", given)
    assert office.run("New-EntraTemporaryAccessPass", given) == made, "it is not good yet"
    office.clock.sleep(2 * 3600 + 60)
    office.user().passes[0]["methodUsabilityReason"] = "OneTimeUsed"
    assert office.run("New-EntraTemporaryAccessPass", given) == made, "it was used, as it was meant to be"
    office.clock.sleep(3600)
    again = {name: value for name, value in given.items() if name != "StartDateTime"}
    assert office.run("New-EntraTemporaryAccessPass", again)["Id"] != made["Id"]
    assert len(office.user(OMAR).sent) == 2


def test_w2_one_mail_is_sent_though_the_answer_was_lost(office: Office) -> None:
    omar_sends_mail(office)
    office.goes_wrong("lost", "sendMail")
    given = {"Sender": POSTMASTER, "Recipients": ["a@b.example", "c@d.example"], "Subject": "Hello"}
    for _ in range(3):
        assert office.run("Send-Mail", given) is True
    assert len(office.user(OMAR).sent) == 1
    office.run("Send-Mail", {**given, "Subject": "Hello again"})
    assert [one["subject"] for one in office.user(OMAR).sent] == ["Hello", "Hello again"]


def test_an_alert_that_nobody_would_get_is_refused(office: Office) -> None:
    with pytest.raises(InvalidParameters, match="ALERT_SENDER"):
        office.run("Send-AdminAlert", {"Subject": "Hello"})
    with pytest.raises(InvalidParameters, match="Recipients is empty"):
        office.run("Send-Mail", {"Sender": POSTMASTER, "Recipients": [], "Subject": "Hello"})


def test_a_manager_can_be_taken_away(office: Office) -> None:
    office.run("Set-EntraUserManager", {"UserId": JANE, "ManagerId": OMAR})
    for _ in range(2):
        assert office.run("Set-EntraUserManager", {"UserId": JANE, "ManagerId": None}) is True
    assert office.user().manager is None


def test_a_former_mailbox_is_forgotten_once(office: Office) -> None:
    office.user().mail |= {"PreviousRecipientTypeDetails": "UserMailbox", "ExchangeGuid": ARCHIVE}
    for _ in range(2):
        assert office.run("Clear-ExchangePreviousMailbox", {"Identity": JANE}) is True
    assert len(office.tenant.asked("Set-User")) == 1
    assert office.run("Set-ExchangeMailUserGuids", {"Identity": JANE, "ExchangeGuid": MAILBOX}) is True


def test_a_move_is_called_off(office: Office) -> None:
    janes_mailbox_is_copied(office)
    assert office.run("Undo-MailboxMove", {"UserPrincipalName": JANE}) is True
    assert office.tenant.directory.moves == {}
