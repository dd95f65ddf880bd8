"""What the reference says of every function: what it returns, and what a second run does."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Meaning:
    """Two sentences about a function."""

    returns: str
    again: str


_TRUE = "`true`."
_MATCH = (
    "`complete`, and `data` with `Match`, `AttributeName`, `CurrentValue`, `ExpectedValue` and whether there is such a"
)

_NOTHING = "It changes nothing."
_GROUP = "`Id`, `Name`, `PrimaryEmail`; `Created`: false if it was there."
_SENT = "A mail with the same sender, recipients, subject and text that was sent before is not sent again."

MEANINGS: Mapping[str, Meaning] = {
    "New-EntraUser": Meaning(
        "`Id`, `DisplayName`, `UserPrincipalName`, `MailNickname` of the account; `Created`: false if it was there.",
        "An account with that UPN is looked for first and, if it is there, left as it is, password included.",
    ),
    "New-ExchangeMailUser": Meaning(
        "`Id`, `DisplayName`, `UserPrincipalName`, `MailNickname`, `PrimaryEmail`, `ExternalEmailAddress` of the mail"
        " user; `Created`: false if it was there.",
        "A mail user or mailbox with that UPN is looked for first and, if it is there, left as it is. An account that"
        " is not a mail user is a failure: Exchange cannot turn it into one.",
    ),
    "Remove-EntraUser": Meaning(
        f"{_TRUE[:-1]}, also when nothing had to be removed.",
        "An account that is gone, or in the bin, counts as removed. `OnlyIfCreated` false or null leaves the account.",
    ),
    "Set-EntraUserUPN": Meaning(_TRUE, "The same name is written again. A `UserId` that is the old name still works."),
    "Set-EntraUserEnabled": Meaning(_TRUE, "The same value is written again."),
    "Set-EntraUserAttributes": Meaning(_TRUE, "The same values are written again; null empties an attribute."),
    "Add-EntraGroupMember": Meaning(
        _TRUE, "Graph refuses; the membership itself is read back, and counts as success if it is there."
    ),
    "Remove-EntraGroupMember": Meaning(
        _TRUE, "Graph finds no member to remove; if group and user exist, this counts as removed."
    ),
    "New-EntraB2BInvitation": Meaning(
        "`InvitationId`, `InvitedUserId`, `InvitedUserEmailAddress`, `InviteRedeemUrl`, `Status`.",
        "The object stays the same, and no second mail is sent to the same address; invitation and link are new.",
    ),
    "Convert-EntraB2BToInternal": Meaning(
        "`Id`, `DisplayName`, `UserPrincipalName`, `Mail`.",
        "Somebody who is internal and has the name is left alone, password included. An account that is synchronised"
        " from another directory is sent neither name nor password, and keeps its own.",
    ),
    "Add-EntraUserLicense": Meaning(
        _TRUE, "A licence that is there with the same plans is left; a usage location that is there stays."
    ),
    "Remove-EntraUserLicense": Meaning(_TRUE, "A licence that is not there counts as removed."),
    "Test-EntraUserLicense": Meaning(
        "`complete`, and `data` with `IsAssigned`, `IsEnabled`, `UserFound`, `SkuId`.", _NOTHING
    ),
    "Test-MigrationCapacity": Meaning(
        "`complete`, and `data` with `SkuId`, `Available`, `Bought`, `Used`, `Needed`.", _NOTHING
    ),
    "New-EntraTemporaryAccessPass": Meaning(
        "`Id`, `StartDateTime`, `LifetimeInMinutes`, `SentTo`; never the pass itself, which is only in the mail and so"
        " in the sent items of `Sender`.",
        "A pass that was mailed stays until it expires. One that was made and not mailed is deleted, and another made.",
    ),
    "Set-EntraUserPassword": Meaning(
        _TRUE, "The same password is written again; without a given one, each run sets another random password."
    ),
    "Revoke-EntraUserSessions": Meaning(_TRUE, "People sign in once more."),
    "Set-EntraUserManager": Meaning(_TRUE, "A manager that is set already is not written again."),
    "Test-EntraAttributeMatch": Meaning(f"{_MATCH} user: `UserFound`.", "It changes nothing."),
    "Test-EntraGroupMembership": Meaning(
        "`complete`, and `data` with `IsMember`, `UserFound`, `GroupId`, `UserId`.", "It changes nothing."
    ),
    "Add-ExchangeSecondaryEmail": Meaning(_TRUE, "An address that is there, in whatever case, is not added again."),
    "Set-ExchangePrimaryEmail": Meaning(_TRUE, "An address that is the primary one already is left as it is."),
    "Set-ExchangeEmailAddresses": Meaning(_TRUE, "Only addresses that are missing are added."),
    "Set-ExchangeExternalAddress": Meaning(
        _TRUE,
        "An address that is set already is not written again. Exchange would make it the primary one, so all addresses"
        " are written with it.",
    ),
    "Set-ExchangeMailUserGuids": Meaning(_TRUE, "Ids that are set already are not written again."),
    "Remove-ExchangeEmailAddress": Meaning(_TRUE, "An address that is not there counts as removed."),
    "Add-ExchangeGroupMember": Meaning(_TRUE, "A member of the group is not added again."),
    "Remove-ExchangeGroupMember": Meaning(_TRUE, "A recipient that is not in the group counts as removed."),
    "New-DistributionGroup": Meaning(_GROUP, "A group of that name is left as it is."),
    "New-MigrationBatchGroup": Meaning(
        f"{_GROUP} Its name is `migration-batch-` and the batch.", "It is left as it is."
    ),
    "Test-DistributionGroupSync": Meaning(
        "`complete`, and `data` with `GroupName`, `Id`, `InExchange`, `InEntra`.", _NOTHING
    ),
    "Get-MailboxInfo": Meaning(
        "`MailboxGuid`, `ArchiveGuid` (null without archive), `PrimarySmtpAddress`, `LegacyExchangeDN`, `X500Addresses`"
        " (that name and all that the mailbox has, as the target needs them), `EmailAddresses`, `IsOnHold`.",
        _NOTHING,
    ),
    "Remove-MailForwarding": Meaning(_TRUE, "A mailbox that forwards nothing is left."),
    "Enable-ExchangeMigrationHold": Meaning(_TRUE, "A mail user that is on hold is left."),
    "Clear-ExchangePreviousMailbox": Meaning(_TRUE, "An account without a former mailbox is left."),
    "Start-MailboxMove": Meaning(
        "`TargetUser`, `Status`, `PercentComplete`, `Message` of the move.",
        "A move that is there goes on, and a mailbox that has moved stays. One that failed is removed and begun anew.",
    ),
    "Test-MailboxMove": Meaning(
        "`complete`, and `data` with `TargetUser`, `Status`, `PercentComplete`, `Message`. A move that failed is a"
        " failure that says why, so that polling stops.",
        _NOTHING,
    ),
    "Complete-MailboxMove": Meaning(_TRUE, "A move that has completed is left."),
    "Undo-MailboxMove": Meaning(
        _TRUE,
        "Without a move there is nothing to do. A mailbox that has moved is a failure: nothing here brings it back.",
    ),
    "Send-Mail": Meaning(_TRUE, _SENT),
    "Send-AdminAlert": Meaning(_TRUE, _SENT),
    "Test-ExchangeAttributeMatch": Meaning(f"{_MATCH} recipient: `RecipientFound`.", "It changes nothing."),
    "Test-ExchangeGroupMembership": Meaning(
        "`complete`, and `data` with `IsMember`, `GroupFound`, `MemberFound`, `GroupIdentity`, `MemberIdentity`.",
        "It changes nothing.",
    ),
}
