"""The functions that migrations need beyond accounts and addresses, as cases of the contract."""

from collections.abc import Callable
from datetime import timedelta

from matoolkit.worker.tenant.directory import MAILBOX as IS_MAILBOX
from matoolkit.worker.tenant.directory import MailboxMove
from matoolkit.worker.tenant.licences import E3, EXCHANGE_PLAN
from tests.worker.functions.situations import Case, jane_is_new, jane_is_on_the_list
from tests.worker.functions.stage import JANE, LIST, MAILBOX, NOBODY, OMAR, World

LEGACY = "/o=Source/ou=Recipients/cn=jane"
POSTMASTER = "omar@contoso.example"
MOVE = {"TargetUser": JANE, "SourceEndpoint": "source", "TargetDeliveryDomain": "contoso.example"}


def jane_is_in_germany(world: World) -> None:
    world.user().properties["usageLocation"] = "DE"


def jane_has_a_licence(world: World) -> None:
    jane_is_in_germany(world)
    world.user().mail["ExchangeGuid"] = MAILBOX
    world.user().licences[E3] = []


def jane_has_a_mailbox(world: World) -> None:
    world.user().mail |= {
        "RecipientTypeDetails": IS_MAILBOX,
        "ExchangeGuid": MAILBOX,
        "LegacyExchangeDN": LEGACY,
        "ForwardingSmtpAddress": "smtp:jane@elsewhere.example",
    }
    addresses = ("SMTP:jane@contoso.example", "X500:/o=Older/cn=jane")
    world.tenant.directory.change_addresses(world.user(), addresses)


def jane_had_a_mailbox(world: World) -> None:
    world.user().mail["PreviousRecipientTypeDetails"] = IS_MAILBOX


def jane_is_ready_to_move(world: World) -> None:
    """She is what her mailbox in the other tenant needs."""
    directory = world.tenant.directory
    world.user().mail |= {"ExchangeGuid": MAILBOX, "ExternalEmailAddress": "SMTP:jane@source.example"}
    directory.change_addresses(world.user(), ("SMTP:jane@contoso.example", f"X500:{LEGACY}"))
    directory.remote_mailboxes[MAILBOX] = {"LegacyExchangeDN": LEGACY}


def janes_mailbox_is_copied(world: World) -> None:
    jane_is_ready_to_move(world)
    now = world.clock.now()
    world.tenant.directory.moves[JANE] = MailboxMove(JANE, now - timedelta(hours=1), now + timedelta(days=300))


def omar_sends_mail(world: World) -> None:
    world.user(OMAR).mail["RecipientTypeDetails"] = IS_MAILBOX


def the_list_is_new(world: World) -> None:
    world.tenant.directory.groups[LIST].created_at = world.clock.now()
    world.tenant.directory.lags.sync = 12


def there_is_a_group(name: str) -> Callable[[World], None]:
    def make(world: World) -> None:
        world.tenant.directory.add_group(name)

    return make


def has_group(world: World, name: str) -> bool:
    return any(one.display_name == name and one.is_in_exchange for one in world.tenant.directory.groups.values())


def moved(status: str, percent: int) -> dict[str, object]:
    return {"TargetUser": JANE, "Status": status, "PercentComplete": percent, "Message": ""}


MIGRATION_CASES = [
    Case(
        "Add-EntraUserLicense",
        {"UserId": JANE, "SkuId": E3, "DisabledPlans": [EXCHANGE_PLAN]},
        True,
        lambda world: world.user().licences == {E3: [EXCHANGE_PLAN]},
        main="assignLicense",
        absent={"UserId": NOBODY},
        prepare=jane_is_in_germany,
        make_new=jane_is_new,
    ),
    Case(
        "Remove-EntraUserLicense",
        {"UserId": JANE, "SkuId": E3},
        True,
        lambda world: world.user().licences == {},
        main="assignLicense",
        absent={"UserId": NOBODY},
        prepare=jane_has_a_licence,
        make_new=jane_is_new,
    ),
    Case(
        "Test-EntraUserLicense",
        {"UserId": JANE, "SkuId": E3, "ServicePlanId": EXCHANGE_PLAN},
        {"complete": True, "data": {"IsAssigned": True, "IsEnabled": True, "UserFound": True, "SkuId": E3}},
        lambda _: True,
        main="GET /v1.0/users",
        absent={"UserId": NOBODY},
        when_absent="is incomplete",
        prepare=jane_has_a_licence,
        make_new=jane_is_new,
    ),
    Case(
        "Test-MigrationCapacity",
        {"SkuId": E3, "Needed": 5},
        {
            "complete": True,
            "data": {"SkuId": E3, "Available": 9_999, "Bought": 10_000, "Used": 1, "Needed": 5},
        },
        lambda _: True,
        main="subscribedSkus",
        absent={"SkuId": NOBODY},
        when_absent="is incomplete",
        prepare=jane_has_a_licence,
    ),
    Case(
        "New-EntraTemporaryAccessPass",
        {"UserId": JANE, "Sender": POSTMASTER, "Recipients": ["jane@home.example"], "LifetimeInMinutes": "90"},
        {"Id": ..., "StartDateTime": ..., "LifetimeInMinutes": 90, "SentTo": ["jane@home.example"]},
        lambda world: len(world.user().passes) == 1 and len(world.user(OMAR).sent) >= 1,
        main=f"POST /v1.0/users/{JANE}/authentication/temporaryAccessPassMethods",
        absent={"UserId": NOBODY},
        prepare=omar_sends_mail,
        make_new=jane_is_new,
    ),
    Case(
        "Set-EntraUserPassword",
        {"UserId": JANE, "Password": "Given-Secret-1"},
        True,
        lambda world: world.user().passwords_set >= 1,
        main="PATCH /v1.0/users",
        absent={"UserId": NOBODY},
        make_new=jane_is_new,
    ),
    Case(
        "Revoke-EntraUserSessions",
        {"UserId": JANE},
        True,
        lambda world: world.user().sessions_revoked >= 1,
        main="revokeSignInSessions",
        absent={"UserId": NOBODY},
        make_new=jane_is_new,
    ),
    Case(
        "Set-EntraUserManager",
        {"UserId": JANE, "ManagerId": "omar@contoso.example"},
        True,
        lambda world: world.user().manager == OMAR,
        main="PUT /v1.0/users",
        absent={"UserId": NOBODY},
        make_new=jane_is_new,
    ),
    Case(
        "Remove-ExchangeEmailAddress",
        {"Identity": JANE, "EmailAddress": "x500:/o=source/ou=recipients/cn=jane"},
        True,
        lambda world: world.addresses() == {"SMTP:jane@contoso.example"},
        main="Set-MailUser",
        absent={"Identity": NOBODY},
        prepare=jane_is_ready_to_move,
        make_new=jane_is_new,
    ),
    Case(
        "Add-ExchangeGroupMember",
        {"GroupIdentity": "all-staff", "MemberIdentity": JANE},
        True,
        lambda world: JANE in world.tenant.directory.groups[LIST].members,
        main="Add-DistributionGroupMember",
        absent={"MemberIdentity": NOBODY},
        make_new=jane_is_new,
    ),
    Case(
        "Remove-ExchangeGroupMember",
        {"GroupIdentity": "all-staff", "MemberIdentity": JANE},
        True,
        lambda world: JANE not in world.tenant.directory.groups[LIST].members,
        main="Remove-DistributionGroupMember",
        absent={"MemberIdentity": NOBODY},
        prepare=jane_is_on_the_list,
        make_new=jane_is_new,
    ),
    Case(
        "New-DistributionGroup",
        {"GroupName": "wave-7", "Description": "The seventh wave", "PrimaryEmail": "wave-7@contoso.example"},
        {"Id": ..., "Name": "wave-7", "PrimaryEmail": "wave-7@contoso.example", "Created": True},
        lambda world: has_group(world, "wave-7"),
        main="POST /adminapi/beta/contoso.example/InvokeCommand New-DistributionGroup",
        conflict=there_is_a_group("wave-7"),
    ),
    Case(
        "New-MigrationBatchGroup",
        {"BatchId": 42, "StartTime": "2026-05-04T12:00:00Z"},
        {
            "Id": ...,
            "Name": "migration-batch-42",
            "PrimaryEmail": "migration-batch-42@contoso.example",
            "Created": True,
        },
        lambda world: has_group(world, "migration-batch-42"),
        main="New-DistributionGroup",
        conflict=there_is_a_group("migration-batch-42"),
    ),
    Case(
        "Test-DistributionGroupSync",
        {"GroupName": "all-staff"},
        {
            "complete": True,
            "data": {"GroupName": "all-staff", "Id": LIST, "InExchange": True, "InEntra": True},
        },
        lambda _: True,
        main="GET /v1.0/groups",
        absent={"GroupName": "nobodys"},
        when_absent="is incomplete",
        make_new=the_list_is_new,
    ),
    Case(
        "Get-MailboxInfo",
        {"UserId": JANE},
        {
            "MailboxGuid": MAILBOX,
            "ArchiveGuid": None,
            "PrimarySmtpAddress": "jane@contoso.example",
            "LegacyExchangeDN": LEGACY,
            "X500Addresses": [f"X500:{LEGACY}", "X500:/o=Older/cn=jane"],
            "EmailAddresses": ["SMTP:jane@contoso.example", "X500:/o=Older/cn=jane"],
            "IsOnHold": False,
        },
        lambda _: True,
        main="Get-Mailbox",
        absent={"UserId": NOBODY},
        prepare=jane_has_a_mailbox,
    ),
    Case(
        "Remove-MailForwarding",
        {"UserPrincipalName": "jane@contoso.example"},
        True,
        lambda world: world.user().mail["ForwardingSmtpAddress"] is None,
        main="Set-Mailbox",
        absent={"UserPrincipalName": "nobody@contoso.example"},
        prepare=jane_has_a_mailbox,
        make_new=jane_is_new,
    ),
    Case(
        "Enable-ExchangeMigrationHold",
        {"Identity": JANE},
        True,
        lambda world: world.user().mail["LitigationHoldEnabled"] is True,
        main="Set-MailUser",
        absent={"Identity": NOBODY},
        make_new=jane_is_new,
    ),
    Case(
        "Clear-ExchangePreviousMailbox",
        {"Identity": JANE},
        True,
        lambda world: world.user().mail["PreviousRecipientTypeDetails"] == "None",
        main="Set-User",
        absent={"Identity": NOBODY},
        prepare=jane_had_a_mailbox,
        make_new=jane_is_new,
    ),
    Case(
        "Start-MailboxMove",
        {**MOVE, "BatchName": "wave-7"},
        moved("Synced", 95),
        lambda world: JANE in world.tenant.directory.moves,
        main="New-MoveRequest",
        absent={"TargetUser": NOBODY},
        prepare=jane_is_ready_to_move,
    ),
    Case(
        "Test-MailboxMove",
        {"TargetUser": JANE},
        {"complete": True, "data": moved("Synced", 95)},
        lambda _: True,
        main="Get-MoveRequestStatistics",
        absent={"TargetUser": NOBODY},
        when_absent="is incomplete",
        prepare=janes_mailbox_is_copied,
        make_new=jane_is_new,
    ),
    Case(
        "Complete-MailboxMove",
        {"TargetUser": JANE},
        True,
        lambda world: world.tenant.directory.moves[JANE].complete_after <= world.clock.now(),
        main="Set-MoveRequest",
        absent={"TargetUser": NOBODY},
        prepare=janes_mailbox_is_copied,
        make_new=jane_is_new,
    ),
    Case(
        "Undo-MailboxMove",
        {"UserPrincipalName": JANE},
        True,
        lambda world: JANE not in world.tenant.directory.moves,
        main="Remove-MoveRequest",
        absent={"UserPrincipalName": NOBODY},
        when_absent="succeeds",
        prepare=janes_mailbox_is_copied,
    ),
    Case(
        "Send-Mail",
        {"Sender": POSTMASTER, "Recipients": ["jane@contoso.example"], "Subject": "Tomorrow", "Body": "You move."},
        True,
        lambda world: len(world.user(OMAR).sent) >= 1,
        main="sendMail",
        absent={"Sender": "nobody@contoso.example"},
        prepare=omar_sends_mail,
    ),
    Case(
        "Send-AdminAlert",
        {"Subject": "Jane was rolled back", "Sender": POSTMASTER, "Recipients": ["admins@contoso.example"]},
        True,
        lambda world: len(world.user(OMAR).sent) >= 1,
        main="sendMail",
        absent={"Sender": "nobody@contoso.example"},
        prepare=omar_sends_mail,
    ),
]
