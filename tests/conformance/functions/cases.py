"""Every function, with what it needs, what it returns, and how the tenant looks afterwards."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from tests.conformance.functions.stage import ARCHIVE, JANE, LIST, MAILBOX, NOBODY, OMAR, STAFF, World

Params = dict[str, Any]


def nothing(_: World) -> None:
    """Jane, Omar and the staff are enough."""


@dataclass(frozen=True)
class Case:
    """A function as it is called. `prepare` makes the state, `is_done` looks at it, `main` is a part of its main call.

    `absent` are the parameters when what it is about is missing, and `when_absent` what it does then. `conflict` makes
    a state in which it cannot succeed, `make_new` one in which what it is about was made a moment ago.
    """

    function: str
    params: Params
    returns: Any
    is_done: Callable[[World], bool]
    main: str
    absent: Params = field(default_factory=dict)
    when_absent: Literal["fails", "succeeds", "is incomplete"] = "fails"
    prepare: Callable[[World], None] = nothing
    conflict: Callable[[World], None] | None = None
    make_new: Callable[[World], None] = nothing

    @property
    def makes_accounts(self) -> bool:
        """Whether it says who made what it is about."""
        return isinstance(self.returns, dict) and "Created" in self.returns

    def __str__(self) -> str:
        return self.function


def jane_is_new(world: World) -> None:
    """Jane was made this moment: nobody sees her for twelve seconds."""
    jane = world.user()
    jane.created_at = world.clock.now()
    world.tenant.directory.lags.graph = world.tenant.directory.lags.exchange = 12


def omar_has(address: str) -> Callable[[World], None]:
    def take(world: World) -> None:
        omar = world.user(OMAR)
        world.tenant.directory.change_addresses(omar, (*omar.addresses[-1][1], f"smtp:{address}"))

    return take


def omar_is_called(upn: str) -> Callable[[World], None]:
    def rename(world: World) -> None:
        world.tenant.directory.rename(world.user(OMAR), upn)

    return rename


def jane_is_in_staff(world: World) -> None:
    world.tenant.directory.groups[STAFF].members[JANE] = world.clock.now() - timedelta(days=1)


def jane_is_on_the_list(world: World) -> None:
    world.tenant.directory.groups[LIST].members[JANE] = world.clock.now() - timedelta(days=1)


def jane_is_a_guest(world: World) -> None:
    world.tenant.directory.rename(world.user(), "jane_old.example#EXT#@contoso.example")
    world.user().properties |= {"externalUserState": "Accepted", "userType": "Guest"}
    world.user().is_external = True


def jane_has_an_account_elsewhere(world: World) -> None:
    """Her mail is an address elsewhere, as an invitation needs it."""
    world.tenant.directory.change_addresses(world.user(), ("SMTP:jane@elsewhere.example",))


def new_user(world: World) -> Any:
    return world.tenant.directory.owner_of_upn("new.person@contoso.example")


def somebody_made_the_new_user(world: World) -> None:
    """Another delivery of the same job was quicker, and the account is not seen yet."""
    world.tenant.directory.add_user({**NEW_USER_AS_GRAPH_KNOWS_IT})
    world.tenant.directory.lags.graph = 12


def the_new_mail_user_is_not_seen(world: World) -> None:
    """What Exchange makes it does not show at once."""
    world.tenant.directory.lags.exchange = 12


NEW_USER = {
    "DisplayName": "New Person",
    "UserPrincipalName": "new.person@contoso.example",
    "MailNickname": "new.person",
}
NEW_USER_AS_GRAPH_KNOWS_IT = {
    "displayName": "New Person",
    "userPrincipalName": "new.person@contoso.example",
    "mailNickname": "new.person",
}

CASES = [
    Case(
        "New-EntraUser",
        {**NEW_USER, "AccountEnabled": "false"},
        {**NEW_USER, "Created": True, "Id": ...},
        lambda world: new_user(world) is not None and new_user(world).properties["accountEnabled"] is False,
        main="POST /v1.0/users",
        conflict=omar_has("new.person@contoso.example"),
        make_new=somebody_made_the_new_user,
    ),
    Case(
        "New-ExchangeMailUser",
        {**NEW_USER, "ExternalEmailAddress": "new.person@source.example", "AccountEnabled": False},
        {
            **NEW_USER,
            "ExternalEmailAddress": "new.person@source.example",
            "PrimaryEmail": "new.person@contoso.example",
            "Created": True,
            "Id": ...,
        },
        lambda world: (
            new_user(world) is not None
            and new_user(world).current == ("SMTP:new.person@contoso.example",)
            and new_user(world).properties["accountEnabled"] is False
        ),
        main="New-MailUser",
        conflict=omar_has("new.person@source.example"),
        make_new=the_new_mail_user_is_not_seen,
    ),
    Case(
        "Remove-EntraUser",
        {"UserId": JANE, "OnlyIfCreated": True},
        True,
        lambda world: JANE not in world.tenant.directory.users and OMAR in world.tenant.directory.users,
        main="DELETE /v1.0/users",
        absent={"UserId": NOBODY},
        when_absent="succeeds",
        make_new=jane_is_new,
    ),
    Case(
        "Set-EntraUserUPN",
        {"UserId": JANE, "NewUserPrincipalName": "jane.doe@contoso.example"},
        True,
        lambda world: world.user().upn == "jane.doe@contoso.example",
        main="PATCH /v1.0/users",
        absent={"UserId": NOBODY},
        conflict=omar_is_called("jane.doe@contoso.example"),
        make_new=jane_is_new,
    ),
    Case(
        "Set-EntraUserEnabled",
        {"UserId": JANE, "Enabled": False},
        True,
        lambda world: world.user().properties["accountEnabled"] is False,
        main="PATCH /v1.0/users",
        absent={"UserId": NOBODY},
        make_new=jane_is_new,
    ),
    Case(
        "Set-EntraUserAttributes",
        {"UserId": JANE, "Attributes": {"department": "Integration", "jobTitle": None}},
        True,
        lambda world: world.user().properties["department"] == "Integration",
        main="PATCH /v1.0/users",
        absent={"UserId": NOBODY},
        make_new=jane_is_new,
    ),
    Case(
        "Add-EntraGroupMember",
        {"GroupId": STAFF, "UserId": JANE},
        True,
        lambda world: world.members() == {JANE},
        main="/members/$ref",
        absent={"UserId": NOBODY},
        make_new=jane_is_new,
    ),
    Case(
        "Remove-EntraGroupMember",
        {"GroupId": STAFF, "UserId": JANE},
        True,
        lambda world: world.members() == set() and JANE in world.tenant.directory.users,
        main="/$ref",
        absent={"UserId": NOBODY},
        prepare=jane_is_in_staff,
        make_new=jane_is_new,
    ),
    Case(
        "New-EntraB2BInvitation",
        {"UserId": JANE, "InvitedUserEmailAddress": "jane@elsewhere.example", "SendInvitationMessage": True},
        {
            "InvitationId": ...,
            "InvitedUserId": JANE,
            "InvitedUserEmailAddress": "jane@elsewhere.example",
            "InviteRedeemUrl": ...,
            "Status": "PendingAcceptance",
        },
        lambda world: world.user().properties["externalUserState"] == "PendingAcceptance",
        main="POST /v1.0/invitations",
        absent={"UserId": NOBODY},
        prepare=jane_has_an_account_elsewhere,
        make_new=jane_is_new,
    ),
    Case(
        "Convert-EntraB2BToInternal",
        {"UserId": JANE, "NewUserPrincipalName": "jane.doe@contoso.example", "Mail": "jane.doe@contoso.example"},
        {
            "Id": JANE,
            "DisplayName": "Jane Doe",
            "UserPrincipalName": "jane.doe@contoso.example",
            "Mail": "jane.doe@contoso.example",
        },
        lambda world: not world.user().is_external and world.user().passwords_set == 1,
        main="convertExternalToInternalMemberUser",
        absent={"UserId": NOBODY},
        prepare=jane_is_a_guest,
        conflict=omar_is_called("jane.doe@contoso.example"),
        make_new=jane_is_new,
    ),
    Case(
        "Test-EntraAttributeMatch",
        {"UserId": JANE, "AttributeName": "displayName", "ExpectedValue": "jane doe"},
        {
            "complete": True,
            "data": {
                "Match": True,
                "AttributeName": "displayName",
                "CurrentValue": "Jane Doe",
                "ExpectedValue": "jane doe",
                "UserFound": True,
            },
        },
        lambda _: True,
        main="GET /v1.0/users",
        absent={"UserId": NOBODY},
        when_absent="is incomplete",
        make_new=jane_is_new,
    ),
    Case(
        "Test-EntraGroupMembership",
        {"GroupId": STAFF, "UserId": JANE},
        {"complete": True, "data": {"IsMember": True, "UserFound": True, "GroupId": STAFF, "UserId": JANE}},
        lambda _: True,
        main="checkMemberGroups",
        absent={"UserId": NOBODY},
        when_absent="is incomplete",
        prepare=jane_is_in_staff,
        make_new=jane_is_new,
    ),
    Case(
        "Add-ExchangeSecondaryEmail",
        {"Identity": JANE, "EmailAddress": "j.doe@contoso.example"},
        True,
        lambda world: world.addresses() == {"SMTP:jane@contoso.example", "smtp:j.doe@contoso.example"},
        main="Set-MailUser",
        absent={"Identity": NOBODY},
        conflict=omar_has("j.doe@contoso.example"),
        make_new=jane_is_new,
    ),
    Case(
        "Set-ExchangePrimaryEmail",
        {"Identity": JANE, "NewPrimaryEmail": "jane.doe@contoso.example"},
        True,
        lambda world: world.addresses() == {"smtp:jane@contoso.example", "SMTP:jane.doe@contoso.example"},
        main="Set-MailUser",
        absent={"Identity": NOBODY},
        conflict=omar_has("jane.doe@contoso.example"),
        make_new=jane_is_new,
    ),
    Case(
        "Set-ExchangeEmailAddresses",
        {"Identity": JANE, "EmailAddresses": ["SMTP:a@contoso.example", "b@contoso.example", "X500:/o=Old/cn=jane"]},
        True,
        lambda world: (
            world.addresses()
            == {"SMTP:jane@contoso.example", "smtp:a@contoso.example", "smtp:b@contoso.example", "X500:/o=Old/cn=jane"}
        ),
        main="Set-MailUser",
        absent={"Identity": NOBODY},
        conflict=omar_has("b@contoso.example"),
        make_new=jane_is_new,
    ),
    Case(
        "Set-ExchangeExternalAddress",
        {"Identity": JANE, "ExternalEmailAddress": "jane@source.example"},
        True,
        lambda world: world.user().mail["ExternalEmailAddress"] == "SMTP:jane@source.example",
        main="Set-MailUser",
        absent={"Identity": NOBODY},
        make_new=jane_is_new,
    ),
    Case(
        "Set-ExchangeMailUserGuids",
        {"Identity": JANE, "ExchangeGuid": MAILBOX.upper(), "ArchiveGuid": f"{{{ARCHIVE}}}"},
        True,
        lambda world: (world.user().mail["ExchangeGuid"], world.user().mail["ArchiveGuid"]) == (MAILBOX, ARCHIVE),
        main="Set-MailUser",
        absent={"Identity": NOBODY},
        make_new=jane_is_new,
    ),
    Case(
        "Test-ExchangeAttributeMatch",
        {"Identity": JANE, "AttributeName": "primarySmtpAddress", "ExpectedValue": "JANE@contoso.example"},
        {
            "complete": True,
            "data": {
                "Match": True,
                "AttributeName": "primarySmtpAddress",
                "CurrentValue": "jane@contoso.example",
                "ExpectedValue": "JANE@contoso.example",
                "RecipientFound": True,
            },
        },
        lambda _: True,
        main="Get-MailUser",
        absent={"Identity": NOBODY},
        when_absent="is incomplete",
        make_new=jane_is_new,
    ),
    Case(
        "Test-ExchangeGroupMembership",
        {"GroupIdentity": "all-staff@contoso.example", "MemberIdentity": JANE},
        {
            "complete": True,
            "data": {
                "IsMember": True,
                "GroupFound": True,
                "MemberFound": True,
                "GroupIdentity": "all-staff@contoso.example",
                "MemberIdentity": JANE,
            },
        },
        lambda _: True,
        main="Get-Recipient",
        absent={"MemberIdentity": NOBODY},
        when_absent="is incomplete",
        prepare=jane_is_on_the_list,
        make_new=jane_is_new,
    ),
]

WRITING = [case for case in CASES if not case.function.startswith("Test-")]
ASKING = [case for case in CASES if case.function.startswith("Test-")]
