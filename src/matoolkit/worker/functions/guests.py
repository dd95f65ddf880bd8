"""People on their way from one tenant to the other: invited as guests, then made members."""

from typing import Any

from matoolkit.worker.clients.failures import Rejected
from matoolkit.worker.clients.graph import GraphClient
from matoolkit.worker.context import Context
from matoolkit.worker.functions.accounts import password_profile, seen_user, user_name
from matoolkit.worker.functions.needs import CONVERT, INVITE, READ_USERS
from matoolkit.worker.registry import function
from matoolkit.worker.signature import Secret

_REDIRECT = "https://myapplications.microsoft.com"
_INVITED_FIELDS = ("id", "externalUserState", "mail", "otherMails")
_CONVERTED_FIELDS = ("id", "displayName", "userPrincipalName", "mail", "externalUserState")


@function("New-EntraB2BInvitation", needs=(READ_USERS, INVITE))
def new_entra_b2b_invitation(
    context: Context,
    user_id: str,
    invited_user_email_address: str,
    invite_redirect_url: str = _REDIRECT,
    send_invitation_message: bool = False,
    customized_message_body: str | None = None,
    invited_user_type: str | None = None,
) -> dict[str, Any]:
    """Invite an internal user to sign in with an account elsewhere; the object is kept, one mail is sent."""
    graph: GraphClient = context.graph
    user = seen_user(context, user_id, _INVITED_FIELDS)
    address = user_name(invited_user_email_address, "InvitedUserEmailAddress")
    invitation: dict[str, Any] = {
        "invitedUserEmailAddress": address,
        "inviteRedirectUrl": invite_redirect_url,
        "invitedUser": {"id": user["id"]},
        "sendInvitationMessage": send_invitation_message and not _is_invited(user, address),
    }
    if customized_message_body:
        invitation["invitedUserMessageInfo"] = {"customizedMessageBody": customized_message_body}
    if invited_user_type:
        invitation["invitedUserType"] = invited_user_type
    made = graph.invite(invitation)
    return {
        "InvitationId": made.get("id"),
        "InvitedUserId": user["id"],
        "InvitedUserEmailAddress": address,
        "InviteRedeemUrl": made.get("inviteRedeemUrl"),
        "Status": made.get("status"),
    }


def _is_invited(user: dict[str, Any], address: str) -> bool:
    known = {str(one).casefold() for one in (user.get("mail"), *(user.get("otherMails") or ()))}
    return user.get("externalUserState") is not None and address.casefold() in known


@function("Convert-EntraB2BToInternal", needs=(READ_USERS, CONVERT))
def convert_entra_b2b_to_internal(
    context: Context,
    user_id: str,
    new_user_principal_name: str,
    mail: str | None = None,
    password: Secret | None = None,
    force_change_password_next_sign_in: bool = True,
) -> dict[str, Any]:
    """Make a guest an internal member; one who is that already keeps name and password."""
    graph: GraphClient = context.graph
    upn = user_name(new_user_principal_name, "NewUserPrincipalName")
    user = seen_user(context, user_id, _CONVERTED_FIELDS)
    if _is_converted(user, upn):
        return _described(user)
    profile = password_profile(context, password, must_change=force_change_password_next_sign_in)
    details = {"userPrincipalName": upn, "passwordProfile": profile, **({"mail": mail} if mail else {})}
    try:
        graph.convert_to_internal(str(user["id"]), details)
    except Rejected:
        if not _is_converted(seen_user(context, str(user["id"]), _CONVERTED_FIELDS), upn):
            raise
    return _described(seen_user(context, str(user["id"]), _CONVERTED_FIELDS))


def _is_converted(user: dict[str, Any], upn: str) -> bool:
    return user.get("externalUserState") is None and str(user.get("userPrincipalName")).casefold() == upn.casefold()


def _described(user: dict[str, Any]) -> dict[str, Any]:
    return {
        "Id": user["id"],
        "DisplayName": user.get("displayName"),
        "UserPrincipalName": user.get("userPrincipalName"),
        "Mail": user.get("mail"),
    }
