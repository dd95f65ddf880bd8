"""What the built-in functions need, one constant for each kind of call; the first name in each allows the least.

A source is the page of Microsoft's documentation that lists the permissions.
"""

from matoolkit.worker.needs import exchange_permission, graph_permission, role

_EVERYTHING = "Directory.ReadWrite.All"
_APP_ONLY = "Exchange, App-only authentication in Exchange Online PowerShell"

READ_USERS = graph_permission(
    "User.Read.All", "User.ReadWrite.All", "Directory.Read.All", _EVERYTHING, source="Graph, Get a user"
)
CREATE_USERS = graph_permission("User.ReadWrite.All", _EVERYTHING, source="Graph, Create user")
CHANGE_USERS = graph_permission("User.ReadWrite.All", _EVERYTHING, source="Graph, Update user")
DELETE_USERS = graph_permission("User.ReadWrite.All", source="Graph, Delete a user")
READ_GROUPS = graph_permission(
    "GroupMember.Read.All",
    "GroupMember.ReadWrite.All",
    "Group.Read.All",
    "Group.ReadWrite.All",
    "Directory.Read.All",
    _EVERYTHING,
    source="Graph, Get group",
)
CHANGE_MEMBERS = graph_permission(
    "GroupMember.ReadWrite.All", "Group.ReadWrite.All", _EVERYTHING, source="Graph, Add members, Remove member"
)
INVITE = graph_permission("User.Invite.All", "User.ReadWrite.All", _EVERYTHING, source="Graph, Create invitation")
CONVERT = graph_permission(
    "User-ConvertToInternal.ReadWrite.All",
    "User.ReadWrite.All",
    source="Graph beta, user: convertExternalToInternalMemberUser",
)

READ_LICENCES = graph_permission(
    "LicenseAssignment.Read.All",
    "Organization.Read.All",
    "Directory.Read.All",
    _EVERYTHING,
    source="Graph, List subscribedSkus",
)
ASSIGN_LICENCES = graph_permission(
    "LicenseAssignment.ReadWrite.All", "User.ReadWrite.All", _EVERYTHING, source="Graph, user: assignLicense"
)
CHANGE_PASSWORDS = graph_permission(
    "User-PasswordProfile.ReadWrite.All", "User.ReadWrite.All", _EVERYTHING, source="Graph, Update user"
)
CHANGE_PASSES = graph_permission(
    "UserAuthMethod-TAP.ReadWrite.All",
    "UserAuthenticationMethod.ReadWrite.All",
    source="Graph, Create temporaryAccessPassMethod",
)
REVOKE_SESSIONS = graph_permission(
    "User.RevokeSessions.All", "User.ReadWrite.All", source="Graph, user: revokeSignInSessions"
)
SEND_MAIL = graph_permission("Mail.Send", source="Graph, user: sendMail")
READ_SENT_MAIL = graph_permission("Mail.ReadBasic.All", "Mail.Read", "Mail.ReadWrite", source="Graph, List messages")

_EXCHANGE = exchange_permission("Exchange.ManageAsApp", source=_APP_ONLY)
READ_RECIPIENTS = (
    _EXCHANGE,
    role("Exchange Recipient Administrator", "Global Reader", "Exchange Administrator", source=_APP_ONLY),
)
CHANGE_RECIPIENTS = (
    _EXCHANGE,
    role("Exchange Recipient Administrator", "Exchange Administrator", source=_APP_ONLY),
)
MOVE_MAILBOXES = (
    _EXCHANGE,
    role(
        "Exchange Recipient Administrator",
        "Exchange Administrator",
        source="Microsoft 365, Cross-tenant mailbox migration; Entra, Microsoft Entra built-in roles",
    ),
)
