"""The functions that workers are known to have: names and parameters, for the linter (rule R11).

`BUILT_IN` has the functions of every worker; the functions that a worker announces come on top.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from matoolkit.runbook.templates import Json

ValueKind: TypeAlias = Literal["text", "true or false", "a whole number", "a list", "a mapping", "anything"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function."""

    name: str
    is_mandatory: bool = False
    is_secret: bool = False
    kind: ValueKind = "text"

    def takes(self, value: Json) -> bool:
        """Whether a value can be meant for the parameter; only the worker can judge the value of a template."""
        if value is None or (isinstance(value, str) and "{{" in value):
            return True
        match self.kind:
            case "true or false":
                return isinstance(value, bool) or (isinstance(value, str) and value.casefold() in {"true", "false"})
            case "a whole number":
                is_number = isinstance(value, int) and not isinstance(value, bool)
                return is_number or (isinstance(value, str) and value.strip().lstrip("+-").isdecimal())
            case "text":
                return not isinstance(value, dict | list)
            case "a list":
                return isinstance(value, list)
            case "a mapping":
                return isinstance(value, dict)
            case "anything":
                return True


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a worker."""

    name: str
    parameters: tuple[Parameter, ...]

    def parameter(self, name: str) -> Parameter | None:
        """Find a parameter, whatever its case."""
        folded = name.casefold()
        return next((known for known in self.parameters if known.name.casefold() == folded), None)


Catalogue: TypeAlias = Mapping[str, Function]


def catalogue_of(*functions: Function) -> Catalogue:
    """Index functions by name, compared without regard to case."""
    return {function.name.casefold(): function for function in functions}


# Parameters that are not text, by their names, which mean the same in every function.
_KINDS: dict[str, ValueKind] = {
    **dict.fromkeys(("AccountEnabled", "Enabled", "OnlyIfCreated", "IsMultiValue"), "true or false"),
    **dict.fromkeys(("ForceChangePasswordNextSignIn", "SendInvitationMessage"), "true or false"),
    **dict.fromkeys(("IsSecurityGroup", "IsUsableOnce"), "true or false"),
    **dict.fromkeys(("LifetimeInMinutes", "Needed"), "a whole number"),
    **dict.fromkeys(("DisabledPlans", "EmailAddresses", "Recipients"), "a list"),
    "Attributes": "a mapping",
    "ExpectedValue": "anything",
}


def _function(name: str, mandatory: str, optional: str = "") -> Function:
    words = [(word, True) for word in mandatory.split()] + [(word, False) for word in optional.split()]
    return Function(
        name,
        tuple(
            Parameter(word, is_mandatory=needed, is_secret=word == "Password", kind=_KINDS.get(word, "text"))
            for word, needed in words
        ),
    )


BUILT_IN: Catalogue = catalogue_of(
    _function(
        "New-EntraUser",
        "DisplayName UserPrincipalName MailNickname",
        "Password AccountEnabled ForceChangePasswordNextSignIn",
    ),
    _function(
        "New-ExchangeMailUser",
        "DisplayName UserPrincipalName MailNickname ExternalEmailAddress",
        "PrimaryEmail FirstName LastName Password AccountEnabled",
    ),
    _function("Remove-EntraUser", "UserId", "OnlyIfCreated"),
    _function("Set-EntraUserUPN", "UserId NewUserPrincipalName"),
    _function("Set-EntraUserEnabled", "UserId Enabled"),
    _function("Set-EntraUserAttributes", "UserId Attributes"),
    _function("Add-EntraGroupMember", "GroupId UserId"),
    _function("Remove-EntraGroupMember", "GroupId UserId"),
    _function(
        "New-EntraB2BInvitation",
        "UserId InvitedUserEmailAddress",
        "InviteRedirectUrl SendInvitationMessage CustomizedMessageBody InvitedUserType",
    ),
    _function(
        "Convert-EntraB2BToInternal",
        "UserId NewUserPrincipalName",
        "Mail Password ForceChangePasswordNextSignIn",
    ),
    _function("Add-EntraUserLicense", "UserId SkuId", "UsageLocation DisabledPlans"),
    _function("Remove-EntraUserLicense", "UserId SkuId"),
    _function("Test-EntraUserLicense", "UserId SkuId", "ServicePlanId"),
    _function("Test-MigrationCapacity", "SkuId Needed"),
    _function(
        "New-EntraTemporaryAccessPass",
        "UserId Sender Recipients",
        "LifetimeInMinutes IsUsableOnce StartDateTime",
    ),
    _function("Set-EntraUserPassword", "UserId", "Password ForceChangePasswordNextSignIn"),
    _function("Revoke-EntraUserSessions", "UserId"),
    _function("Set-EntraUserManager", "UserId ManagerId"),
    _function("Test-EntraAttributeMatch", "UserId AttributeName ExpectedValue", "IsMultiValue"),
    _function("Test-EntraGroupMembership", "GroupId UserId"),
    _function("Add-ExchangeSecondaryEmail", "Identity EmailAddress"),
    _function("Set-ExchangePrimaryEmail", "Identity NewPrimaryEmail"),
    _function("Set-ExchangeExternalAddress", "Identity ExternalEmailAddress", "PrimaryEmail"),
    _function("Set-ExchangeEmailAddresses", "Identity EmailAddresses"),
    _function("Set-ExchangeMailUserGuids", "Identity ExchangeGuid", "ArchiveGuid"),
    _function("Test-ExchangeAttributeMatch", "Identity AttributeName ExpectedValue", "IsMultiValue"),
    _function("Test-ExchangeGroupMembership", "GroupIdentity MemberIdentity"),
    _function("Remove-ExchangeEmailAddress", "Identity EmailAddress"),
    _function("Add-ExchangeGroupMember", "GroupIdentity MemberIdentity"),
    _function("Remove-ExchangeGroupMember", "GroupIdentity MemberIdentity"),
    _function("New-DistributionGroup", "GroupName", "Description PrimaryEmail IsSecurityGroup"),
    _function("Test-DistributionGroupSync", "GroupName"),
    _function("New-MigrationBatchGroup", "BatchId", "StartTime"),
    _function("Get-MailboxInfo", "UserId"),
    _function("Remove-MailForwarding", "UserPrincipalName"),
    _function("Enable-ExchangeMigrationHold", "Identity"),
    _function("Clear-ExchangePreviousMailbox", "Identity"),
    _function(
        "Start-MailboxMove",
        "TargetUser SourceEndpoint TargetDeliveryDomain",
        "BatchName",
    ),
    _function("Test-MailboxMove", "TargetUser", "Until"),
    _function("Complete-MailboxMove", "TargetUser"),
    _function("Undo-MailboxMove", "UserPrincipalName"),
    _function("Send-Mail", "Sender Recipients Subject", "Body"),
    _function("Send-AdminAlert", "Subject", "Body Sender Recipients"),
)
