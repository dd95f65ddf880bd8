"""People on their way from one tenant to the other: invited as guests, then made members."""

from typing import Any

from matoolkit.worker.clients.failures import Forbidden, Rejected, Unanswered
from matoolkit.worker.clients.graph import GraphClient
from matoolkit.worker.context import Context
from matoolkit.worker.functions.accounts import password_profile, seen_user, user_name
from matoolkit.worker.functions.lag import wait_out_loss
from matoolkit.worker.functions.needs import CONVERT, INVITE, READ_USERS
from matoolkit.worker.registry import function
from matoolkit.worker.signature import Secret

_REDIRECT = "https://myapplications.microsoft.com"
_INVITED_FIELDS = ("id", "externalUserState", "mail", "otherMails")
_CONVERTED_FIELDS = (
    *("id", "displayName", "userPrincipalName", "mail", "externalUserState", "userType", "onPremisesSyncEnabled"),
)
# What Graph says of somebody who was converted before; the state of the invitation may still be the old one.
_ALREADY_INTERNAL = "already internal"


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
    address = user_name(invited_user_email_address, "InvitedUserEmailAddress")
    user = seen_user(context, user_id, _INVITED_FIELDS)
    if str(user.get("mail")).casefold() != address.casefold():
        why = "set it first with Set-EntraUserAttributes, or in Exchange if there is a mailbox"
        raise Rejected(f"{user['id']} cannot be invited as {address}: its mail is {user.get('mail') or 'empty'}; {why}")
    invitation: dict[str, Any] = {
        "invitedUserEmailAddress": address,
        "inviteRedirectUrl": invite_redirect_url,
        "invitedUser": {"id": user["id"]},
    }
    if customized_message_body:
        invitation["invitedUserMessageInfo"] = {"customizedMessageBody": customized_message_body}
    if invited_user_type:
        invitation["invitedUserType"] = invited_user_type
    made = _invited(context, user, invitation, is_mailed=send_invitation_message)
    return {
        "InvitationId": made.get("id"),
        "InvitedUserId": user["id"],
        "InvitedUserEmailAddress": address,
        "InviteRedeemUrl": made.get("inviteRedeemUrl"),
        "Status": made.get("status"),
    }


def _invited(context: Context, user: dict[str, Any], invitation: dict[str, Any], *, is_mailed: bool) -> dict[str, Any]:
    """Invite, and mail only who was not invited before; if no answer came, look before inviting again."""
    graph: GraphClient = context.graph
    address = invitation["invitedUserEmailAddress"]
    try:
        try:
            return graph.invite({**invitation, "sendInvitationMessage": is_mailed and not _is_invited(user, address)})
        except Unanswered as lost:
            wait_out_loss(context.clock, lost)
            again = seen_user(context, str(user["id"]), _INVITED_FIELDS)
            return graph.invite({**invitation, "sendInvitationMessage": is_mailed and not _is_invited(again, address)})
    except Forbidden as refusal:
        refusal.message += "; where only administrators may invite, it has to have the role Guest Inviter"
        raise


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
    details: dict[str, Any] = {"mail": mail} if mail else {}
    # The other directory keeps name and password of a synchronised account, and Graph refuses both.
    if not user.get("onPremisesSyncEnabled"):
        profile = password_profile(context, password, must_change=force_change_password_next_sign_in)
        details |= {"userPrincipalName": upn, "passwordProfile": profile}
    try:
        graph.convert_to_internal(str(user["id"]), details)
    except (Rejected, Unanswered) as refusal:
        after = seen_user(context, str(user["id"]), _CONVERTED_FIELDS)
        is_renamed = _has_name(after, upn) and not _has_name(user, upn)
        if not is_renamed and not _is_converted(after, upn) and not _was_converted(after, upn, refusal):
            raise
    return _described(seen_user(context, str(user["id"]), _CONVERTED_FIELDS))


def _is_converted(user: dict[str, Any], upn: str) -> bool:
    return user.get("externalUserState") is None and _has_name(user, upn)


def _was_converted(user: dict[str, Any], upn: str, refusal: Rejected | Unanswered) -> bool:
    """Whether an account is internal although its invitation state never changes."""
    is_internal = _ALREADY_INTERNAL in refusal.message and user.get("userType") == "Member"
    return is_internal and (_has_name(user, upn) or bool(user.get("onPremisesSyncEnabled")))


def _has_name(user: dict[str, Any], upn: str) -> bool:
    return str(user.get("userPrincipalName")).casefold() == upn.casefold()


def _described(user: dict[str, Any]) -> dict[str, Any]:
    return {
        "Id": user["id"],
        "DisplayName": user.get("displayName"),
        "UserPrincipalName": user.get("userPrincipalName"),
        "Mail": user.get("mail"),
    }
