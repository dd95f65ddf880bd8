"""What a real tenant does and a kind one would not, one row of the audit each (rules W2, W4, W9)."""

import httpx
import pytest

from matoolkit.backoff import Backoff
from matoolkit.worker.clients import connect_to_simulation
from matoolkit.worker.clients.failures import Rejected, TenantFailed, Unreachable
from matoolkit.worker.tenant import TenantServer
from matoolkit.worker.tenant.directory import Lags
from matoolkit.worker.tenant.licences import E3
from tests.worker.functions.office import JANE, LIST, MAILBOX, NOBODY, STAFF, Office
from tests.worker.functions.office import office as new_office
from tests.worker.functions.situations import NEW_USER, jane_has_an_account_elsewhere, jane_is_a_guest

NEW_MAIL_USER = {**NEW_USER, "ExternalEmailAddress": "new.person@source.example"}
SECONDARY = {"Identity": JANE, "EmailAddress": "j@contoso.example"}
GUIDS = {"Identity": NEW_USER["UserPrincipalName"], "ExchangeGuid": MAILBOX}
CONVERSION = {"UserId": JANE, "NewUserPrincipalName": "jane.doe@contoso.example"}


def test_row_1_an_account_made_by_graph_is_no_mail_user_and_one_made_by_exchange_is(office: Office) -> None:
    office.run("New-EntraUser", NEW_USER)
    with pytest.raises(TenantFailed, match="there is no mail user or mailbox"):
        office.run("Set-ExchangeMailUserGuids", GUIDS)
    office.run("Remove-EntraUser", {"UserId": NEW_USER["UserPrincipalName"]})
    assert office.run("New-ExchangeMailUser", NEW_MAIL_USER)["Created"] is True
    assert office.run("Set-ExchangeMailUserGuids", GUIDS) is True


def test_row_2_a_licence_before_the_id_of_the_mailbox_makes_another_mailbox(office: Office) -> None:
    licences = office.tenant.directory.add_group("licences", licences=[E3])
    office.run("Add-EntraGroupMember", {"GroupId": licences.id, "UserId": JANE})
    with pytest.raises(Rejected, match="a licence came before the ExchangeGuid"):
        office.run("Set-ExchangeMailUserGuids", {"Identity": JANE, "ExchangeGuid": MAILBOX})


def test_row_2_a_licence_after_the_id_of_the_mailbox_leaves_the_mail_user(office: Office) -> None:
    licences = office.tenant.directory.add_group("licences", licences=[E3])
    office.run("Set-ExchangeMailUserGuids", {"Identity": JANE, "ExchangeGuid": MAILBOX})
    office.run("Add-EntraGroupMember", {"GroupId": licences.id, "UserId": JANE})
    assert office.user().kind == "MailUser"
    assert office.user().mail["ExchangeGuid"] == MAILBOX


@pytest.mark.parametrize("time", ["said to be compressed", "as it is"])
def test_row_3_the_role_that_is_missing_is_named(office: Office, time: str) -> None:
    office.goes_wrong("forbid", "Set-MailUser", times=None)
    for number in range(1 if time == "as it is" else 2):
        with pytest.raises(Rejected, match=r"the application needs .*Exchange Recipient Administrator"):
            office.run("Add-ExchangeSecondaryEmail", SECONDARY)
        assert len(office.tenant.asked("Set-MailUser")) == number + 1


def test_row_3_the_permission_that_is_missing_is_named(office: Office) -> None:
    office.goes_wrong("forbid", "PATCH", times=None)
    with pytest.raises(Rejected, match=r"the application needs .*User\.ReadWrite\.All"):
        office.run("Set-EntraUserUPN", {"UserId": JANE, "NewUserPrincipalName": "jane.doe@contoso.example"})


def test_row_4_a_synchronised_guest_is_converted_without_name_and_password(office: Office) -> None:
    jane_is_a_guest(office)
    office.user().properties["onPremisesSyncEnabled"] = True
    returned = office.run("Convert-EntraB2BToInternal", CONVERSION)
    assert returned["UserPrincipalName"] == office.user().upn != CONVERSION["NewUserPrincipalName"]
    assert not office.user().is_external
    assert office.user().passwords_set == 0
    assert office.run("Convert-EntraB2BToInternal", CONVERSION) == returned


def test_row_5_an_invitation_needs_the_address_to_be_the_accounts_mail(office: Office) -> None:
    given = {"UserId": JANE, "InvitedUserEmailAddress": "jane@elsewhere.example"}
    with pytest.raises(Rejected, match=r"its mail is jane@contoso\.example.*Set-EntraUserAttributes"):
        office.run("New-EntraB2BInvitation", given)
    assert office.tenant.asked("invitations") == []
    jane_has_an_account_elsewhere(office)
    assert office.run("New-EntraB2BInvitation", given)["Status"] == "PendingAcceptance"


def test_row_5_where_only_administrators_invite_that_is_said(office: Office) -> None:
    jane_has_an_account_elsewhere(office)
    office.goes_wrong("forbid", "invitations")
    with pytest.raises(Rejected, match=r"Guest Inviter; the application needs .*User\.Invite\.All"):
        office.run("New-EntraB2BInvitation", {"UserId": JANE, "InvitedUserEmailAddress": "jane@elsewhere.example"})


def test_row_6_a_cmdlets_error_with_status_500_is_read(office: Office) -> None:
    given = {"Identity": NOBODY, "AttributeName": "Alias", "ExpectedValue": "x"}
    assert office.run("Test-ExchangeAttributeMatch", given)["complete"] is False
    assert office.seconds() == 0
    assert [status for label, status in office.tenant.calls if "Get-Mailbox" in label] == [500]


def test_row_7_every_form_of_success_is_one(office: Office) -> None:
    statuses = []
    for number in range(8):
        office.run("Add-ExchangeSecondaryEmail", {"Identity": JANE, "EmailAddress": f"j{number}@contoso.example"})
        statuses.append([status for label, status in office.tenant.calls if "Set-MailUser" in label][-1])
    assert statuses == [200, 204, 200, 200] * 2
    assert len(office.addresses()) == 9


def test_row_8_an_external_address_does_not_become_the_primary_one(office: Office) -> None:
    given = {"Identity": JANE, "ExternalEmailAddress": "jane@source.example"}
    assert office.run("Set-ExchangeExternalAddress", given) is True
    assert office.user().mail["ExternalEmailAddress"] == "SMTP:jane@source.example"
    assert office.addresses() == {"SMTP:jane@contoso.example"}


def test_row_9_what_graph_does_not_return_is_returned(office: Office) -> None:
    assert office.run("New-EntraUser", NEW_USER)["MailNickname"] == "new.person"


def test_row_10_membership_through_another_group_does_not_hide_a_refusal(office: Office) -> None:
    inner = office.tenant.directory.add_group("inner", members=[JANE])
    office.tenant.directory.groups[STAFF].members[inner.id] = office.user().created_at
    office.goes_wrong("forbid", "$ref", times=None)
    with pytest.raises(Rejected, match=r"the application needs .*GroupMember\.ReadWrite\.All"):
        office.run("Add-EntraGroupMember", {"GroupId": STAFF, "UserId": JANE})
    assert JANE not in office.members()


def test_row_10_who_is_in_through_another_group_alone_is_not_in_it_directly(office: Office) -> None:
    inner = office.tenant.directory.add_group("inner", members=[JANE])
    office.tenant.directory.groups[STAFF].members[inner.id] = office.user().created_at
    assert office.run("Remove-EntraGroupMember", {"GroupId": STAFF, "UserId": JANE}) is True
    assert office.seconds() == 0
    assert office.run("Test-EntraGroupMembership", {"GroupId": STAFF, "UserId": JANE})["complete"] is True


@pytest.mark.parametrize("form", ["requests", "directory", "timeout"])
def test_row_11_what_passes_is_tried_again(office: Office, form: str) -> None:
    office.goes_wrong("busy", "Set-MailUser", times=2, code=form)
    assert office.run("Add-ExchangeSecondaryEmail", SECONDARY) is True
    assert "smtp:j@contoso.example" in office.addresses()


def test_row_12_a_change_that_may_still_be_running_is_not_sent_again(
    server: TenantServer, impatient_http: httpx.Client
) -> None:
    with new_office(server, impatient_http, Backoff(count=3)) as office:
        office.goes_wrong("hang", "Set-MailUser", times=None)
        with pytest.raises(Unreachable, match="it may still be at work, so it is not sent again"):
            office.run("Add-ExchangeSecondaryEmail", SECONDARY)
        office.tenant.faults.clear()
        assert len(office.tenant.asked("Set-MailUser")) <= 1


def test_row_13_a_second_conversion_is_a_success(office: Office) -> None:
    jane_is_a_guest(office)
    first = office.run("Convert-EntraB2BToInternal", CONVERSION)
    assert office.user().properties["externalUserState"] == "Accepted", "it stays so in the tenant"
    assert office.run("Convert-EntraB2BToInternal", CONVERSION) == first
    assert office.user().passwords_set == 1


@pytest.mark.parametrize("function", ["Add-EntraGroupMember", "Remove-EntraGroupMember"])
def test_row_14_a_distribution_list_is_refused_at_once(office: Office, function: str) -> None:
    office.tenant.directory.groups[LIST].members |= {JANE: office.clock.now()} if function[0] == "R" else {}
    with pytest.raises(Rejected, match=f"{function.replace('Entra', 'Exchange')} changes its members"):
        office.run(function, {"GroupId": LIST, "UserId": JANE})
    assert office.seconds() == 0
    assert len(office.tenant.asked("$ref")) == 1


def test_row_15_an_application_is_asked_for_among_applications(office: Office) -> None:
    application = "55555555-aaaa-4bbb-8ccc-000000000001"
    office.tenant.directory.applications[application] = "migration"
    given = {"GroupId": STAFF, "UserId": application}
    assert office.run("Test-EntraGroupMembership", given)["complete"] is False
    assert office.run("Add-EntraGroupMember", given) is True
    assert office.run("Add-EntraGroupMember", given) is True
    assert office.run("Test-EntraGroupMembership", given)["complete"] is True


def test_row_19_an_organisation_that_is_none_is_named(server: TenantServer, http: httpx.Client) -> None:
    with new_office(server, http) as office:
        clients = connect_to_simulation(server.url, office.clock, Backoff(), http, organization="typo.example")
        with pytest.raises(Rejected, match=r"no organisation typo\.example.*TARGET_ORGANIZATION"):
            clients.exchange.run("Get-MailUser", {"Identity": JANE})


def test_w9_what_graph_made_is_seen_by_exchange_later(office: Office) -> None:
    office.tenant.directory.lags = Lags()
    made = office.run("New-ExchangeMailUser", NEW_MAIL_USER)
    assert made["Created"] is True
    assert office.seconds() >= Lags().exchange
