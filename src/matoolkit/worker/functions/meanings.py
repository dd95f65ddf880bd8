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

MEANINGS: Mapping[str, Meaning] = {
    "New-EntraUser": Meaning(
        "`Id`, `DisplayName`, `UserPrincipalName`, `MailNickname` of the account; `Created`: false if it was there.",
        "An account with that UPN is looked for first and, if it is there, left as it is, password included.",
    ),
    "New-ExchangeMailUser": Meaning(
        "`Id`, `DisplayName`, `UserPrincipalName`, `MailNickname`, `PrimaryEmail`, `ExternalEmailAddress` of the mail"
        " user; `Created`: false if it was there.",
        "A mail user or mailbox with that UPN is looked for first and, if it is there, left as it is. An account that"
        " is no mail user is a failure: Exchange cannot make one of it.",
    ),
    "Remove-EntraUser": Meaning(
        f"{_TRUE[:-1]}, also when nothing had to be removed.",
        "An account that is gone, or in the bin, counts as removed. `OnlyIfCreated` false or null leaves the account.",
    ),
    "Set-EntraUserUPN": Meaning(_TRUE, "The same name is written again. A `UserId` that is the old name still works."),
    "Set-EntraUserEnabled": Meaning(_TRUE, "The same value is written again."),
    "Set-EntraUserAttributes": Meaning(_TRUE, "The same values are written again; null empties an attribute."),
    "Add-EntraGroupMember": Meaning(
        _TRUE, "Graph refuses; the membership itself is read back, and that it is there counts."
    ),
    "Remove-EntraGroupMember": Meaning(
        _TRUE, "Graph finds nobody to remove; group and user are looked for, and that they are apart counts."
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
    "Test-ExchangeAttributeMatch": Meaning(f"{_MATCH} recipient: `RecipientFound`.", "It changes nothing."),
    "Test-ExchangeGroupMembership": Meaning(
        "`complete`, and `data` with `IsMember`, `GroupFound`, `MemberFound`, `GroupIdentity`, `MemberIdentity`.",
        "It changes nothing.",
    ),
}
