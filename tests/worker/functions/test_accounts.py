"""Accounts, in the cases that only they have."""

from dataclasses import replace
from typing import Any

import pytest

from matoolkit.domain.messages import WorkerJob, correlation_of
from matoolkit.ids import Kind
from matoolkit.worker.clients.failures import InvalidIdentifier, ObjectMissing, Rejected
from matoolkit.worker.execution import Execution
from matoolkit.worker.failures import InvalidParameters
from matoolkit.worker.functions.passwords import make_password
from matoolkit.worker.masking import Masking
from matoolkit.worker.secrets import EnvironmentSecrets, WorkerSecrets
from matoolkit.worker.tenant.calls import Answer, Request
from tests.worker.functions.office import FUNCTIONS, JANE, MADE_UP, OMAR, STAFF, Office
from tests.worker.functions.situations import NEW_USER, jane_has_an_account_elsewhere, jane_is_a_guest, new_user


def test_w2_an_account_that_was_there_is_returned_as_it_is(office: Office) -> None:
    state = office.state()
    given = {"DisplayName": "Another Jane", "UserPrincipalName": "JANE@contoso.example", "MailNickname": "j"}
    assert office.run("New-EntraUser", {**given, "Password": "Given-Secret-1"}) == {
        "Id": JANE,
        "DisplayName": "Jane Doe",
        "UserPrincipalName": "jane@contoso.example",
        "MailNickname": "jane",
        "Created": False,
    }
    assert office.state() == state


def test_w2_an_account_whose_creation_was_not_answered_counts_as_created(office: Office) -> None:
    """Or a rollback would leave it behind."""
    office.goes_wrong("lost", "POST /v1.0/users", times=2)
    assert office.run("New-EntraUser", NEW_USER)["Created"] is True
    assert len(office.tenant.asked("POST /v1.0/users")) == 3


def test_w2_an_account_of_another_kind_that_turns_up_does_not_count_as_created(office: Office) -> None:
    """An answer was lost, and somebody else made an account of that name in the same moment: it is not ours."""
    answer = office.tenant.answer
    was_lost: list[Request] = []

    def lose_the_first(request: Request) -> Answer:
        if request.method == "POST" and not was_lost:
            was_lost.append(request)
            other = {"displayName": "Not New", "mailNickname": "x", "userPrincipalName": NEW_USER["UserPrincipalName"]}
            office.tenant.directory.add_user(other)
            return Answer(is_reset=True)
        return answer(request)

    office.tenant.answer = lose_the_first  # type: ignore[method-assign]
    assert office.run("New-EntraUser", NEW_USER)["Created"] is False


def test_a_password_that_is_given_is_used_and_told_to_nobody(office: Office) -> None:
    seen: list[Any] = []
    answer = office.tenant.answer

    def note(request: Request) -> Answer:
        seen.append(request.body)
        return answer(request)

    office.tenant.answer = note  # type: ignore[method-assign]
    returned = office.run(
        "New-EntraUser", {**NEW_USER, "Password": "Given-Secret-1", "ForceChangePasswordNextSignIn": False}
    )
    assert seen[-1]["passwordProfile"] == {"password": "Given-Secret-1", "forceChangePasswordNextSignIn": False}
    assert "Given-Secret-1" not in repr(returned)


@pytest.mark.parametrize("given", [{}, {"Password": "Given-Secret-1"}])
def test_a_password_that_a_refusal_repeats_does_not_leave_the_worker(office: Office, given: dict[str, str]) -> None:
    def tell(request: Request) -> Answer:
        if request.method == "GET":
            return Answer(404, {})
        password = request.body["passwordProfile"]["password"]
        return Answer(400, {"error": {"code": "Request_BadRequest", "message": f"{password} is too simple"}})

    office.tenant.answer = tell  # type: ignore[method-assign]
    masking = Masking()
    context = replace(office.context, secrets=WorkerSecrets(EnvironmentSecrets({}), masking))
    execution = Execution("worker-01", FUNCTIONS, context, masking, office.clock)
    correlation = correlation_of(1, Kind.STEP, "people", 1)
    job = WorkerJob("step-1-attempt-1", 1, "worker-01", "New-EntraUser", {**NEW_USER, **given}, correlation)
    error = execution.result_of(job).error
    assert error
    assert error.message == "Graph: POST /v1.0/users: *** is too simple (Request_BadRequest)"
    assert error.type == "Rejected"


def test_a_password_that_is_too_simple_is_refused_at_once(office: Office) -> None:
    with pytest.raises(Rejected, match="password complexity"):
        office.run("New-EntraUser", {**NEW_USER, "Password": "simple"})
    assert office.seconds() == 0


def test_passwords_that_are_made_up_have_every_kind_of_letter_and_never_repeat() -> None:
    made = {make_password() for _ in range(500)}
    assert len(made) == 500
    for password in made:
        assert len(password) == 32
        assert any(one.islower() for one in password)
        assert any(one.isupper() for one in password)
        assert any(one.isdigit() for one in password)
        assert any(not one.isalnum() for one in password)


@pytest.mark.parametrize("upn", ["", "jane", "a b@c.d", JANE, "a/b@c.d"])
def test_what_is_no_upn_is_refused_before_anything_is_called(office: Office, upn: str) -> None:
    with pytest.raises(InvalidIdentifier, match="UserPrincipalName has to be"):
        office.run("New-EntraUser", {**NEW_USER, "UserPrincipalName": upn})
    assert office.tenant.calls == []


@pytest.mark.parametrize("answer", [False, "false", "False", None])
def test_w2_an_account_that_was_there_before_is_never_removed(office: Office, answer: Any) -> None:
    assert office.run("Remove-EntraUser", {"UserId": JANE, "OnlyIfCreated": answer}) is True
    assert JANE in office.tenant.directory.users
    assert office.tenant.calls == []


@pytest.mark.parametrize("given", [{}, {"OnlyIfCreated": True}, {"OnlyIfCreated": "true"}])
def test_w2_an_account_is_removed_when_nothing_speaks_against_it(office: Office, given: dict[str, Any]) -> None:
    assert office.run("Remove-EntraUser", {"UserId": JANE, **given}) is True
    assert JANE not in office.tenant.directory.users


def test_w2_an_account_in_the_bin_is_not_waited_for(office: Office) -> None:
    office.run("Remove-EntraUser", {"UserId": JANE})
    office.run("Remove-EntraUser", {"UserId": JANE})
    assert office.seconds() == 0


def test_w2_an_account_that_is_too_new_to_be_seen_is_removed_all_the_same(office: Office) -> None:
    office.tenant.directory.lags.graph = 20
    made = office.run("New-EntraUser", NEW_USER)
    assert office.run("Remove-EntraUser", {"UserId": made["Id"], "OnlyIfCreated": made["Created"]}) is True
    assert new_user(office) is None


def test_w2_somebody_called_by_the_old_name_can_be_renamed_twice(office: Office) -> None:
    given = {"UserId": "jane@contoso.example", "NewUserPrincipalName": "jane.doe@contoso.example"}
    assert office.run("Set-EntraUserUPN", given) is True
    assert office.run("Set-EntraUserUPN", given) is True
    assert office.user().upn == "jane.doe@contoso.example"


def test_w2_somebody_called_by_a_name_that_nobody_has_is_missing(office: Office) -> None:
    given = {"UserId": "nobody@contoso.example", "NewUserPrincipalName": "nobody2@contoso.example"}
    with pytest.raises(ObjectMissing, match=r"nobody@contoso.example"):
        office.run("Set-EntraUserUPN", given)


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ({"passwordProfile": {"password": "Secret-1"}}, "may not hold a password"),
        ({"PASSWORDPROFILE": {}}, "may not hold a password"),
        ({"a b": 1}, "a name that no attribute has: 'a b'"),
        ({"@odata.type": "x"}, "a name that no attribute has"),
    ],
)
def test_attributes_that_are_none_are_refused(office: Office, attributes: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParameters, match=told) as caught:
        office.run("Set-EntraUserAttributes", {"UserId": JANE, "Attributes": attributes})
    assert "Secret-1" not in str(caught.value)
    assert office.tenant.calls == []


def test_attributes_that_graph_does_not_let_be_written_are_refused(office: Office) -> None:
    with pytest.raises(Rejected, match="'proxyAddresses' is read-only"):
        office.run("Set-EntraUserAttributes", {"UserId": JANE, "Attributes": {"proxyAddresses": []}})
    assert office.run("Set-EntraUserAttributes", {"UserId": JANE, "Attributes": {}}) is True


def test_a_group_that_is_missing_is_told_at_once(office: Office) -> None:
    """Or every member of a batch would wait for it."""
    for function in ("Add-EntraGroupMember", "Remove-EntraGroupMember"):
        with pytest.raises(ObjectMissing, match=f"there is no group {JANE}"):
            office.run(function, {"GroupId": JANE, "UserId": JANE})
    assert office.seconds() == 0


def test_members_may_be_called_by_their_upn(office: Office) -> None:
    given = {"GroupId": STAFF, "UserId": "omar@contoso.example"}
    assert office.run("Add-EntraGroupMember", given) is True
    assert office.members() == {OMAR}
    assert office.run("Test-EntraGroupMembership", given)["complete"] is True
    assert office.run("Remove-EntraGroupMember", given) is True
    assert office.members() == set()


def test_w2_a_membership_that_is_too_new_to_be_seen_is_waited_for(office: Office) -> None:
    given = {"GroupId": STAFF, "UserId": JANE}
    office.tenant.directory.lags.graph = 10
    assert office.run("Add-EntraGroupMember", given) is True
    assert office.run("Test-EntraGroupMembership", given)["complete"] is False
    assert office.run("Add-EntraGroupMember", given) is True, (
        "Graph says that the member is there, and does not show it"
    )
    assert office.run("Test-EntraGroupMembership", given)["complete"] is True


@pytest.mark.parametrize("function", ["Add-EntraGroupMember", "Remove-EntraGroupMember"])
def test_a_refusal_that_the_state_does_not_explain_is_told(office: Office, function: str) -> None:
    """A group with dynamic membership takes and loses nobody by hand."""
    if function.startswith("Remove"):
        office.run("Add-EntraGroupMember", {"GroupId": STAFF, "UserId": JANE})
    office.goes_wrong("refuse", "$ref", times=None, status=403, code="Authorization_RequestDenied")
    with pytest.raises(Rejected, match="Authorization_RequestDenied"):
        office.run(function, {"GroupId": STAFF, "UserId": JANE})
    assert office.seconds() == 0


def test_w2_one_invitation_mail_is_sent(office: Office) -> None:
    jane_has_an_account_elsewhere(office)
    given = {"UserId": JANE, "InvitedUserEmailAddress": "jane@elsewhere.example", "SendInvitationMessage": True}
    more = {"InvitedUserType": "Guest", "CustomizedMessageBody": "Welcome", "InviteRedirectUrl": "https://a.example"}
    for _ in range(3):
        office.run("New-EntraB2BInvitation", {**given, **more})
    assert office.user().invitation_mails == 1
    assert office.user().properties["userType"] == "Guest"
    invitations = office.tenant.directory.invitations
    assert [one["inviteRedirectUrl"] for one in invitations] == ["https://a.example"] * 3
    office.tenant.directory.change_addresses(office.user(), ("SMTP:jane@third.example",))
    office.run("New-EntraB2BInvitation", {**given, "InvitedUserEmailAddress": "jane@third.example"})
    assert office.user().invitation_mails == 1, (
        "a guest that was invited before is not mailed at another address either"
    )


def test_w2_one_mail_is_sent_though_the_answer_was_lost(office: Office) -> None:
    jane_has_an_account_elsewhere(office)
    office.goes_wrong("lost", "POST /v1.0/invitations")
    given = {"UserId": JANE, "InvitedUserEmailAddress": "jane@elsewhere.example", "SendInvitationMessage": True}
    assert office.run("New-EntraB2BInvitation", given)["Status"] == "PendingAcceptance"
    assert office.user().invitation_mails == 1


def test_nobody_is_mailed_unless_that_was_asked_for(office: Office) -> None:
    jane_has_an_account_elsewhere(office)
    office.run("New-EntraB2BInvitation", {"UserId": JANE, "InvitedUserEmailAddress": "jane@elsewhere.example"})
    assert office.user().invitation_mails == 0


def test_w2_a_conversion_whose_answer_was_lost_sets_the_password_once(office: Office) -> None:
    jane_is_a_guest(office)
    office.goes_wrong("lost", "convertExternal")
    returned = office.run(
        "Convert-EntraB2BToInternal", {"UserId": JANE, "NewUserPrincipalName": "jane.doe@contoso.example"}
    )
    assert returned["UserPrincipalName"] == "jane.doe@contoso.example"
    assert office.user().passwords_set == 1
    assert MADE_UP not in repr(returned)


def test_w2_somebody_who_is_internal_is_not_converted_again(office: Office) -> None:
    """Graph might do it, and set another password."""
    given = {"UserId": JANE, "NewUserPrincipalName": "jane@contoso.example", "Password": "Given-Secret-1"}
    assert office.run("Convert-EntraB2BToInternal", given)["Id"] == JANE
    assert office.tenant.asked("convertExternal") == []
