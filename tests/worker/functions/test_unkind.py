"""What a real tenant does and a kind one would not, one row of the audit each (rules W2, W4, W9)."""

import httpx
import pytest

from matoolkit.backoff import Backoff
from matoolkit.worker.clients import connect_to_simulation
from matoolkit.worker.clients.failures import Rejected, TenantFailed, Unreachable
from matoolkit.worker.tenant import TenantServer
from matoolkit.worker.tenant.directory import Lags
from matoolkit.worker.tenant.licences import E3
from tests.worker.functions.situations import NEW_USER, jane_has_an_account_elsewhere, jane_is_a_guest
from tests.worker.functions.stage import JANE, LIST, MAILBOX, NOBODY, STAFF, World
from tests.worker.functions.stage import world as new_world

NEW_MAIL_USER = {**NEW_USER, "ExternalEmailAddress": "new.person@source.example"}
SECONDARY = {"Identity": JANE, "EmailAddress": "j@contoso.example"}
GUIDS = {"Identity": NEW_USER["UserPrincipalName"], "ExchangeGuid": MAILBOX}
CONVERSION = {"UserId": JANE, "NewUserPrincipalName": "jane.doe@contoso.example"}


def test_row_1_an_account_made_by_graph_is_no_mail_user_and_one_made_by_exchange_is(world: World) -> None:
    world.run("New-EntraUser", NEW_USER)
    with pytest.raises(TenantFailed, match="there is no mail user or mailbox"):
        world.run("Set-ExchangeMailUserGuids", GUIDS)
    world.run("Remove-EntraUser", {"UserId": NEW_USER["UserPrincipalName"]})
    assert world.run("New-ExchangeMailUser", NEW_MAIL_USER)["Created"] is True
    assert world.run("Set-ExchangeMailUserGuids", GUIDS) is True


def test_row_2_a_licence_before_the_id_of_the_mailbox_makes_another_mailbox(world: World) -> None:
    licences = world.tenant.directory.add_group("licences", licences=[E3])
    world.run("Add-EntraGroupMember", {"GroupId": licences.id, "UserId": JANE})
    with pytest.raises(Rejected, match="a licence came before the ExchangeGuid"):
        world.run("Set-ExchangeMailUserGuids", {"Identity": JANE, "ExchangeGuid": MAILBOX})


def test_row_2_a_licence_after_the_id_of_the_mailbox_leaves_the_mail_user(world: World) -> None:
    licences = world.tenant.directory.add_group("licences", licences=[E3])
    world.run("Set-ExchangeMailUserGuids", {"Identity": JANE, "ExchangeGuid": MAILBOX})
    world.run("Add-EntraGroupMember", {"GroupId": licences.id, "UserId": JANE})
    assert world.user().kind == "MailUser"
    assert world.user().mail["ExchangeGuid"] == MAILBOX


@pytest.mark.parametrize("time", ["said to be compressed", "as it is"])
def test_row_3_the_role_that_is_missing_is_named(world: World, time: str) -> None:
    world.goes_wrong("forbid", "Set-MailUser", times=None)
    for number in range(1 if time == "as it is" else 2):
        with pytest.raises(Rejected, match=r"the application needs .*Exchange Recipient Administrator"):
            world.run("Add-ExchangeSecondaryEmail", SECONDARY)
        assert len(world.tenant.asked("Set-MailUser")) == number + 1


def test_row_3_the_permission_that_is_missing_is_named(world: World) -> None:
    world.goes_wrong("forbid", "PATCH", times=None)
    with pytest.raises(Rejected, match=r"the application needs .*User\.ReadWrite\.All"):
        world.run("Set-EntraUserUPN", {"UserId": JANE, "NewUserPrincipalName": "jane.doe@contoso.example"})


def test_row_4_a_synchronised_guest_is_converted_without_name_and_password(world: World) -> None:
    jane_is_a_guest(world)
    world.user().properties["onPremisesSyncEnabled"] = True
    returned = world.run("Convert-EntraB2BToInternal", CONVERSION)
    assert returned["UserPrincipalName"] == world.user().upn != CONVERSION["NewUserPrincipalName"]
    assert not world.user().is_external
    assert world.user().passwords_set == 0
    assert world.run("Convert-EntraB2BToInternal", CONVERSION) == returned


def test_row_5_an_invitation_needs_the_address_to_be_the_accounts_mail(world: World) -> None:
    given = {"UserId": JANE, "InvitedUserEmailAddress": "jane@elsewhere.example"}
    with pytest.raises(Rejected, match=r"its mail is jane@contoso\.example.*Set-EntraUserAttributes"):
        world.run("New-EntraB2BInvitation", given)
    assert world.tenant.asked("invitations") == []
    jane_has_an_account_elsewhere(world)
    assert world.run("New-EntraB2BInvitation", given)["Status"] == "PendingAcceptance"


def test_row_5_where_only_administrators_invite_that_is_said(world: World) -> None:
    jane_has_an_account_elsewhere(world)
    world.goes_wrong("forbid", "invitations")
    with pytest.raises(Rejected, match=r"Guest Inviter; the application needs .*User\.Invite\.All"):
        world.run("New-EntraB2BInvitation", {"UserId": JANE, "InvitedUserEmailAddress": "jane@elsewhere.example"})


def test_row_6_a_cmdlets_error_with_status_500_is_read(world: World) -> None:
    given = {"Identity": NOBODY, "AttributeName": "Alias", "ExpectedValue": "x"}
    assert world.run("Test-ExchangeAttributeMatch", given)["complete"] is False
    assert world.seconds() == 0
    assert [status for label, status in world.tenant.calls if "Get-Mailbox" in label] == [500]


def test_row_7_every_form_of_success_is_one(world: World) -> None:
    statuses = []
    for number in range(8):
        world.run("Add-ExchangeSecondaryEmail", {"Identity": JANE, "EmailAddress": f"j{number}@contoso.example"})
        statuses.append([status for label, status in world.tenant.calls if "Set-MailUser" in label][-1])
    assert statuses == [200, 204, 200, 200] * 2
    assert len(world.addresses()) == 9


def test_row_8_an_external_address_does_not_become_the_primary_one(world: World) -> None:
    given = {"Identity": JANE, "ExternalEmailAddress": "jane@source.example"}
    assert world.run("Set-ExchangeExternalAddress", given) is True
    assert world.user().mail["ExternalEmailAddress"] == "SMTP:jane@source.example"
    assert world.addresses() == {"SMTP:jane@contoso.example"}


def test_row_9_what_graph_does_not_return_is_returned(world: World) -> None:
    assert world.run("New-EntraUser", NEW_USER)["MailNickname"] == "new.person"


def test_row_10_membership_through_another_group_does_not_hide_a_refusal(world: World) -> None:
    inner = world.tenant.directory.add_group("inner", members=[JANE])
    world.tenant.directory.groups[STAFF].members[inner.id] = world.user().created_at
    world.goes_wrong("forbid", "$ref", times=None)
    with pytest.raises(Rejected, match=r"the application needs .*GroupMember\.ReadWrite\.All"):
        world.run("Add-EntraGroupMember", {"GroupId": STAFF, "UserId": JANE})
    assert JANE not in world.members()


def test_row_10_who_is_in_through_another_group_alone_is_not_in_it_directly(world: World) -> None:
    inner = world.tenant.directory.add_group("inner", members=[JANE])
    world.tenant.directory.groups[STAFF].members[inner.id] = world.user().created_at
    assert world.run("Remove-EntraGroupMember", {"GroupId": STAFF, "UserId": JANE}) is True
    assert world.seconds() == 0
    assert world.run("Test-EntraGroupMembership", {"GroupId": STAFF, "UserId": JANE})["complete"] is True


@pytest.mark.parametrize("form", ["requests", "directory", "timeout"])
def test_row_11_what_passes_is_tried_again(world: World, form: str) -> None:
    world.goes_wrong("busy", "Set-MailUser", times=2, code=form)
    assert world.run("Add-ExchangeSecondaryEmail", SECONDARY) is True
    assert "smtp:j@contoso.example" in world.addresses()


def test_row_12_a_change_that_may_still_be_running_is_not_sent_again(
    server: TenantServer, impatient_http: httpx.Client
) -> None:
    with new_world(server, impatient_http, Backoff(count=3)) as world:
        world.goes_wrong("hang", "Set-MailUser", times=None)
        with pytest.raises(Unreachable, match="it may still be at work, so it is not sent again"):
            world.run("Add-ExchangeSecondaryEmail", SECONDARY)
        world.tenant.faults.clear()
        assert len(world.tenant.asked("Set-MailUser")) <= 1


def test_row_13_a_second_conversion_is_a_success(world: World) -> None:
    jane_is_a_guest(world)
    first = world.run("Convert-EntraB2BToInternal", CONVERSION)
    assert world.user().properties["externalUserState"] == "Accepted", "it stays so in the tenant"
    assert world.run("Convert-EntraB2BToInternal", CONVERSION) == first
    assert world.user().passwords_set == 1


@pytest.mark.parametrize("function", ["Add-EntraGroupMember", "Remove-EntraGroupMember"])
def test_row_14_a_distribution_list_is_refused_at_once(world: World, function: str) -> None:
    world.tenant.directory.groups[LIST].members |= {JANE: world.clock.now()} if function[0] == "R" else {}
    with pytest.raises(Rejected, match=f"{function.replace('Entra', 'Exchange')} changes its members"):
        world.run(function, {"GroupId": LIST, "UserId": JANE})
    assert world.seconds() == 0
    assert len(world.tenant.asked("$ref")) == 1


def test_row_15_an_application_is_asked_for_among_applications(world: World) -> None:
    application = "55555555-aaaa-4bbb-8ccc-000000000001"
    world.tenant.directory.applications[application] = "migration"
    given = {"GroupId": STAFF, "UserId": application}
    assert world.run("Test-EntraGroupMembership", given)["complete"] is False
    assert world.run("Add-EntraGroupMember", given) is True
    assert world.run("Add-EntraGroupMember", given) is True
    assert world.run("Test-EntraGroupMembership", given)["complete"] is True


def test_row_19_an_organisation_that_is_none_is_named(server: TenantServer, http: httpx.Client) -> None:
    with new_world(server, http) as world:
        clients = connect_to_simulation(server.url, world.clock, Backoff(), http, organization="typo.example")
        with pytest.raises(Rejected, match=r"no organisation typo\.example.*TARGET_ORGANIZATION"):
            clients.exchange.run("Get-MailUser", {"Identity": JANE})


def test_w9_what_graph_made_is_seen_by_exchange_later(world: World) -> None:
    world.tenant.directory.lags = Lags()
    made = world.run("New-ExchangeMailUser", NEW_MAIL_USER)
    assert made["Created"] is True
    assert world.seconds() >= Lags().exchange
