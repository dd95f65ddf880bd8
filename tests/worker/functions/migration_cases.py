"""The functions that migrations need beyond accounts and addresses, as cases of the contract."""

from collections.abc import Callable
from datetime import timedelta

from matoolkit.worker.tenant.directory import MAILBOX as IS_MAILBOX
from matoolkit.worker.tenant.directory import MailboxMove
from matoolkit.worker.tenant.licences import E3, EXCHANGE_PLAN
from tests.worker.functions.office import JANE, LIST, MAILBOX, NOBODY, OMAR, Office
from tests.worker.functions.situations import Case, jane_is_new, jane_is_on_the_list

LEGACY = "/o=Source/ou=Recipients/cn=jane"
POSTMASTER = "omar@contoso.example"
MOVE = {"TargetUser": JANE, "SourceEndpoint": "source", "TargetDeliveryDomain": "contoso.example"}


def jane_is_in_germany(office: Office) -> None:
    office.user().properties["usageLocation"] = "DE"


def jane_has_a_licence(office: Office) -> None:
    jane_is_in_germany(office)
    office.user().mail["ExchangeGuid"] = MAILBOX
    office.user().licences[E3] = []


def jane_has_a_mailbox(office: Office) -> None:
    office.user().mail |= {
        "RecipientTypeDetails": IS_MAILBOX,
        "ExchangeGuid": MAILBOX,
        "LegacyExchangeDN": LEGACY,
        "ForwardingSmtpAddress": "smtp:jane@elsewhere.example",
    }
    addresses = ("SMTP:jane@contoso.example", "X500:/o=Older/cn=jane")
    office.tenant.directory.change_addresses(office.user(), addresses)


def jane_had_a_mailbox(office: Office) -> None:
    office.user().mail["PreviousRecipientTypeDetails"] = IS_MAILBOX


def jane_is_ready_to_move(office: Office) -> None:
    """She is what her mailbox in the other tenant needs."""
    directory = office.tenant.directory
    office.user().mail |= {"ExchangeGuid": MAILBOX, "ExternalEmailAddress": "SMTP:jane@source.example"}
    directory.change_addresses(office.user(), ("SMTP:jane@contoso.example", f"X500:{LEGACY}"))
    directory.remote_mailboxes[MAILBOX] = {"LegacyExchangeDN": LEGACY}


def janes_mailbox_is_copied(office: Office) -> None:
    jane_is_ready_to_move(office)
    now = office.clock.now()
    office.tenant.directory.moves[JANE] = MailboxMove(JANE, now - timedelta(hours=1), now + timedelta(days=300))


def omar_sends_mail(office: Office) -> None:
    office.user(OMAR).mail["RecipientTypeDetails"] = IS_MAILBOX


def the_list_is_new(office: Office) -> None:
    office.tenant.directory.groups[LIST].created_at = office.clock.now()
    office.tenant.directory.lags.sync = 12


def there_is_a_group(name: str) -> Callable[[Office], None]:
    def make(office: Office) -> None:
        office.tenant.directory.add_group(name)

    return make


def has_group(office: Office, name: str) -> bool:
    return any(one.display_name == name and one.is_in_exchange for one in office.tenant.directory.groups.values())


def moved(status: str, percent: int) -> dict[str, object]:
    return {"TargetUser": JANE, "Status": status, "PercentComplete": percent, "Message": ""}


MIGRATION_CASES = [
    Case(
        "Add-EntraUserLicense",
        {"UserId": JANE, "SkuId": E3, "DisabledPlans": [EXCHANGE_PLAN]},
        True,
        lambda office: office.user().licences == {E3: [EXCHANGE_PLAN]},
        main="assignLicense",
        absent={"UserId": NOBODY},
        prepare=jane_is_in_germany,
        make_new=jane_is_new,
    ),
    Case(
        "Remove-EntraUserLicense",
        {"UserId": JANE, "SkuId": E3},
        True,
        lambda office: office.user().licences == {},
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
        lambda office: len(office.user().passes) == 1 and len(office.user(OMAR).sent) >= 1,
        main=f"POST /v1.0/users/{JANE}/authentication/temporaryAccessPassMethods",
        absent={"UserId": NOBODY},
        prepare=omar_sends_mail,
        make_new=jane_is_new,
    ),
    Case(
        "Set-EntraUserPassword",
        {"UserId": JANE, "Password": "Given-Secret-1"},
        True,
        lambda office: office.user().passwords_set >= 1,
        main="PATCH /v1.0/users",
        absent={"UserId": NOBODY},
        make_new=jane_is_new,
    ),
    Case(
        "Revoke-EntraUserSessions",
        {"UserId": JANE},
        True,
        lambda office: office.user().sessions_revoked >= 1,
        main="revokeSignInSessions",
        absent={"UserId": NOBODY},
        make_new=jane_is_new,
    ),
    Case(
        "Set-EntraUserManager",
        {"UserId": JANE, "ManagerId": "omar@contoso.example"},
        True,
        lambda office: office.user().manager == OMAR,
        main="PUT /v1.0/users",
        absent={"UserId": NOBODY},
        make_new=jane_is_new,
    ),
    Case(
        "Remove-ExchangeEmailAddress",
        {"Identity": JANE, "EmailAddress": "x500:/o=source/ou=recipients/cn=jane"},
        True,
        lambda office: office.addresses() == {"SMTP:jane@contoso.example"},
        main="Set-MailUser",
        absent={"Identity": NOBODY},
        prepare=jane_is_ready_to_move,
        make_new=jane_is_new,
    ),
    Case(
        "Add-ExchangeGroupMember",
        {"GroupIdentity": "all-staff", "MemberIdentity": JANE},
        True,
        lambda office: JANE in office.tenant.directory.groups[LIST].members,
        main="Add-DistributionGroupMember",
        absent={"MemberIdentity": NOBODY},
        make_new=jane_is_new,
    ),
    Case(
        "Remove-ExchangeGroupMember",
        {"GroupIdentity": "all-staff", "MemberIdentity": JANE},
        True,
        lambda office: JANE not in office.tenant.directory.groups[LIST].members,
        main="Remove-DistributionGroupMember",
        absent={"MemberIdentity": NOBODY},
        prepare=jane_is_on_the_list,
        make_new=jane_is_new,
    ),
    Case(
        "New-DistributionGroup",
        {"GroupName": "wave-7", "Description": "The seventh wave", "PrimaryEmail": "wave-7@contoso.example"},
        {"Id": ..., "Name": "wave-7", "PrimaryEmail": "wave-7@contoso.example", "Created": True},
        lambda office: has_group(office, "wave-7"),
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
        lambda office: has_group(office, "migration-batch-42"),
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
        lambda office: office.user().mail["ForwardingSmtpAddress"] is None,
        main="Set-Mailbox",
        absent={"UserPrincipalName": "nobody@contoso.example"},
        prepare=jane_has_a_mailbox,
        make_new=jane_is_new,
    ),
    Case(
        "Enable-ExchangeMigrationHold",
        {"Identity": JANE},
        True,
        lambda office: office.user().mail["LitigationHoldEnabled"] is True,
        main="Set-MailUser",
        absent={"Identity": NOBODY},
        make_new=jane_is_new,
    ),
    Case(
        "Clear-ExchangePreviousMailbox",
        {"Identity": JANE},
        True,
        lambda office: office.user().mail["PreviousRecipientTypeDetails"] == "None",
        main="Set-User",
        absent={"Identity": NOBODY},
        prepare=jane_had_a_mailbox,
        make_new=jane_is_new,
    ),
    Case(
        "Start-MailboxMove",
        {**MOVE, "BatchName": "wave-7"},
        moved("Synced", 95),
        lambda office: JANE in office.tenant.directory.moves,
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
        lambda office: office.tenant.directory.moves[JANE].complete_after <= office.clock.now(),
        main="Set-MoveRequest",
        absent={"TargetUser": NOBODY},
        prepare=janes_mailbox_is_copied,
        make_new=jane_is_new,
    ),
    Case(
        "Undo-MailboxMove",
        {"UserPrincipalName": JANE},
        True,
        lambda office: JANE not in office.tenant.directory.moves,
        main="Remove-MoveRequest",
        absent={"UserPrincipalName": NOBODY},
        when_absent="succeeds",
        prepare=janes_mailbox_is_copied,
    ),
    Case(
        "Send-Mail",
        {"Sender": POSTMASTER, "Recipients": ["jane@contoso.example"], "Subject": "Tomorrow", "Body": "You move."},
        True,
        lambda office: len(office.user(OMAR).sent) >= 1,
        main="sendMail",
        absent={"Sender": "nobody@contoso.example"},
        prepare=omar_sends_mail,
    ),
    Case(
        "Send-AdminAlert",
        {"Subject": "Jane was rolled back", "Sender": POSTMASTER, "Recipients": ["admins@contoso.example"]},
        True,
        lambda office: len(office.user(OMAR).sent) >= 1,
        main="sendMail",
        absent={"Sender": "nobody@contoso.example"},
        prepare=omar_sends_mail,
    ),
]
