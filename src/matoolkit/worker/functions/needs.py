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

_EXCHANGE = exchange_permission("Exchange.ManageAsApp", source=_APP_ONLY)
READ_RECIPIENTS = (
    _EXCHANGE,
    role("Exchange Recipient Administrator", "Global Reader", "Exchange Administrator", source=_APP_ONLY),
)
CHANGE_RECIPIENTS = (
    _EXCHANGE,
    role("Exchange Recipient Administrator", "Exchange Administrator", source=_APP_ONLY),
)
