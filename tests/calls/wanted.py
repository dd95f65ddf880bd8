"""Which calls, types and cmdlets the contract knows, and the few facts that no source holds in a readable form.

To let the functions make another call, add it here and run `python -m tests.calls.extract` (its help says with what).
"""

from collections.abc import Mapping

GRAPH: Mapping[str, tuple[str, ...]] = {
    "/users": ("GET", "POST"),
    "/users/{}": ("GET", "PATCH", "DELETE"),
    "/users/{}/assignLicense": ("POST",),
    "/users/{}/licenseDetails": ("GET",),
    "/users/{}/checkMemberGroups": ("POST",),
    "/users/{}/memberOf": ("GET",),
    "/users/{}/transitiveMemberOf": ("GET",),
    "/users/{}/revokeSignInSessions": ("POST",),
    "/users/{}/manager": ("GET",),
    "/users/{}/manager/$ref": ("GET", "PUT", "DELETE"),
    "/users/{}/sendMail": ("POST",),
    "/users/{}/authentication/methods": ("GET",),
    "/users/{}/authentication/methods/{}/resetPassword": ("POST",),
    "/users/{}/authentication/temporaryAccessPassMethods": ("GET", "POST"),
    "/users/{}/authentication/temporaryAccessPassMethods/{}": ("GET", "DELETE"),
    "/directory/deletedItems/{}": ("GET", "DELETE"),
    "/directory/deletedItems/{}/restore": ("POST",),
    "/directoryObjects/{}": ("GET",),
    "/directoryObjects/{}/checkMemberGroups": ("POST",),
    "/servicePrincipals": ("GET",),
    "/servicePrincipals/{}": ("GET",),
    "/servicePrincipals/{}/checkMemberGroups": ("POST",),
    "/servicePrincipals/{}/memberOf": ("GET",),
    "/users/{}/mailFolders/{}/messages": ("GET",),
    "/groups": ("GET", "POST"),
    "/groups/{}": ("GET", "PATCH"),
    "/groups/{}/members": ("GET",),
    "/groups/{}/transitiveMembers": ("GET",),
    "/groups/{}/members/$ref": ("POST",),
    "/groups/{}/members/{}/$ref": ("DELETE",),
    "/invitations": ("POST",),
    "/subscribedSkus": ("GET",),
    "/organization": ("GET",),
    "/domains": ("GET",),
}

GRAPH_BETA: Mapping[str, tuple[str, ...]] = {"/users/{}/convertExternalToInternalMemberUser": ("POST",)}

# Types that are described besides those of bodies and answers. A property of any other type is left out.
NESTED = frozenset(
    {
        *(
            "PasswordProfile",
            "OnPremisesExtensionAttributes",
            "EmployeeOrgData",
            "ObjectIdentity",
            "LicenseAssignmentState",
        ),
        *(
            "AssignedLicense",
            "AssignedPlan",
            "LicenseDetails",
            "ServicePlanInfo",
            "SubscribedSku",
            "LicenseUnitsDetail",
        ),
        *("InvitedUserMessageInfo", "Recipient", "EmailAddress", "Message", "ItemBody", "InternetMessageHeader"),
        *("User", "Group", "ServicePrincipal", "DirectoryObject", "TemporaryAccessPassAuthenticationMethod"),
        *("AuthenticationMethod", "Organization", "Domain", "VerifiedDomain"),
    }
)

# What Graph returns of a user when nobody selects (Graph, "user resource type", the properties "returned by default").
DEFAULTS: Mapping[str, tuple[str, ...]] = {
    "User": (
        *("businessPhones", "displayName", "givenName", "id", "jobTitle", "mail", "mobilePhone", "officeLocation"),
        *("preferredLanguage", "surname", "userPrincipalName"),
    )
}

CMDLETS = (
    *("Get-Recipient", "Get-User", "Set-User"),
    *("Get-MailUser", "New-MailUser", "Set-MailUser", "Remove-MailUser"),
    *("Get-Mailbox", "Set-Mailbox", "Get-MailboxStatistics"),
    *("Get-DistributionGroup", "New-DistributionGroup", "Set-DistributionGroup", "Remove-DistributionGroup"),
    *("Get-DistributionGroupMember", "Add-DistributionGroupMember", "Remove-DistributionGroupMember"),
    *("Get-UnifiedGroupLinks", "Add-UnifiedGroupLinks", "Remove-UnifiedGroupLinks"),
    *("New-MoveRequest", "Get-MoveRequest", "Get-MoveRequestStatistics", "Set-MoveRequest"),
    *("Resume-MoveRequest", "Suspend-MoveRequest", "Remove-MoveRequest"),
    *("New-MigrationBatch", "Get-MigrationBatch", "Set-MigrationBatch", "Start-MigrationBatch"),
    *("Complete-MigrationBatch", "Stop-MigrationBatch", "Remove-MigrationBatch"),
    *("Get-MigrationUser", "Set-MigrationUser", "Remove-MigrationUser", "Get-MigrationUserStatistics"),
    *("Get-MigrationEndpoint", "Test-MigrationServerAvailability"),
    *("Get-OrganizationConfig", "Get-OrganizationRelationship", "Get-AcceptedDomain", "Get-ManagementRoleAssignment"),
)

# Whose properties an answer has; a cmdlet that is not here answers with nothing.
ANSWERS_LIKE: Mapping[str, str] = {
    "New-MailUser": "Get-MailUser",
    "New-DistributionGroup": "Get-DistributionGroup",
    "Get-DistributionGroupMember": "Get-Recipient",
    "Get-UnifiedGroupLinks": "Get-Recipient",
    "New-MoveRequest": "Get-MoveRequest",
    "New-MigrationBatch": "Get-MigrationBatch",
}

_EVERY_RECIPIENT = (
    *("Identity", "Guid", "Id", "Name", "DisplayName", "Alias", "DistinguishedName", "ExternalDirectoryObjectId"),
    *("EmailAddresses", "PrimarySmtpAddress", "RecipientType", "RecipientTypeDetails", "WindowsLiveID", "IsDirSynced"),
    *(
        "WhenCreated",
        "WhenCreatedUTC",
        "WhenChanged",
        "WhenChangedUTC",
        "OrganizationId",
        "ExchangeObjectId",
        "SKUAssigned",
    ),
)
_MOVE = (
    *("Identity", "Guid", "DisplayName", "Alias", "ExchangeGuid", "ArchiveGuid", "Status", "Flags", "BatchName"),
    *("Direction", "RequestStyle", "RemoteHostName", "TargetDatabase", "SourceDatabase", "SuspendWhenReadyToComplete"),
)
# Written by hand: the documentation does not list what these return. Names from examples in the cmdlets' own pages, in
# "Cross-tenant mailbox migration" and in published output.
ANSWERS_BY_HAND: Mapping[str, tuple[str, ...]] = {
    "Get-Recipient": (*_EVERY_RECIPIENT, "ExternalEmailAddress", "ExchangeGuid"),
    "Get-User": (*_EVERY_RECIPIENT, "UserPrincipalName", "PreviousRecipientTypeDetails"),
    "Get-MailUser": (
        *_EVERY_RECIPIENT,
        *(
            "UserPrincipalName",
            "ExternalEmailAddress",
            "ExchangeGuid",
            "ArchiveGuid",
            "ArchiveStatus",
            "LegacyExchangeDN",
        ),
        *("HiddenFromAddressListsEnabled", "MicrosoftOnlineServicesID", "LitigationHoldEnabled", "InPlaceHolds"),
        *("MailboxRegion", "ForwardingAddress", "ForwardingSmtpAddress", "DeliverToMailboxAndForward"),
    ),
    "Get-Mailbox": (
        *_EVERY_RECIPIENT,
        *("UserPrincipalName", "MicrosoftOnlineServicesID", "LegacyExchangeDN", "HiddenFromAddressListsEnabled"),
    ),
    "Get-MailboxStatistics": ("DisplayName", "MailboxGuid", "ItemCount", "TotalItemSize", "TotalDeletedItemSize"),
    "Get-DistributionGroup": (*_EVERY_RECIPIENT, "GroupType", "ManagedBy", "MemberJoinRestriction"),
    "Get-MoveRequest": _MOVE,
    "Get-MoveRequestStatistics": (
        *_MOVE,
        *(
            "StatusDetail",
            "SyncStage",
            "PercentComplete",
            "TotalMailboxSize",
            "TotalMailboxItemCount",
            "ItemsTransferred",
        ),
        *("BytesTransferred", "BadItemsEncountered", "LargeItemsEncountered", "DataConsistencyScore", "CompleteAfter"),
        *("FailureCode", "FailureType", "FailureSide", "Message", "LastUpdateTimestamp", "CompletionTimestamp"),
        *("MailboxIdentity", "TargetDeliveryDomain", "StartTimestamp", "QueuedTimestamp"),
    ),
    "Get-MigrationBatch": (
        *(
            "Identity",
            "BatchGuid",
            "Status",
            "State",
            "MigrationType",
            "BatchDirection",
            "SourceEndpoint",
            "TargetEndpoint",
        ),
        *("TotalCount", "ActiveCount", "SyncedCount", "FinalizedCount", "FailedCount", "StoppedCount", "PendingCount"),
        *("CreationDateTime", "StartDateTime", "CompleteAfter", "TargetDeliveryDomain", "Message", "WorkflowStage"),
    ),
    "Get-MigrationUser": (
        *("Identity", "Guid", "BatchId", "Status", "State", "ErrorSummary", "MailboxEmailAddress", "MailboxGuid"),
        *("RecipientType", "MigrationType", "LastSuccessfulSyncTime", "StatusSummary", "TriggeredAction"),
    ),
    "Get-MigrationUserStatistics": (
        *("Identity", "BatchId", "Status", "Error", "PercentageComplete", "SyncedItemCount", "SkippedItemCount"),
        *("EstimatedTotalTransferSize", "BytesTransferred", "LastSuccessfulSyncTime", "DataConsistencyScore"),
    ),
    "Get-MigrationEndpoint": ("Identity", "Guid", "EndpointType", "RemoteServer", "RemoteTenant", "ApplicationId"),
    "Test-MigrationServerAvailability": ("Result", "Message", "ErrorDetail", "TestedEndpoint", "SupportsCutover"),
    "Get-OrganizationConfig": ("Identity", "Name", "DisplayName", "Guid", "IsDehydrated"),
    "Get-OrganizationRelationship": (
        *("Identity", "Name", "DomainNames", "Enabled", "MailboxMoveEnabled", "MailboxMoveCapability"),
        *("MailboxMovePublishedScopes", "OAuthApplicationId"),
    ),
    "Get-AcceptedDomain": ("Identity", "Name", "DomainName", "DomainType", "Default", "InitialDomain"),
    "Get-ManagementRoleAssignment": (
        *(
            "Identity",
            "Name",
            "Role",
            "RoleAssignee",
            "RoleAssigneeName",
            "RoleAssigneeType",
            "RoleAssignmentDelegationType",
        ),
        *("Enabled", "EffectiveUserName", "AssignmentMethod"),
    ),
}

DATABRICKS = ("execute_statement", "get_statement", "get_statement_result_chunk_n", "cancel_execution")
