"""Accounts: making them and removing them."""

from contextlib import suppress
from typing import Any

from matoolkit.worker.clients.failures import ObjectMissing, ObjectTaken, Rejected, Unanswered
from matoolkit.worker.clients.graph import GraphClient
from matoolkit.worker.clients.identifiers import is_object_id, user_key
from matoolkit.worker.context import Context
from matoolkit.worker.functions.accounts import password_profile, user_name
from matoolkit.worker.functions.lag import tries, until_seen
from matoolkit.worker.functions.needs import CREATE_USERS, DELETE_USERS, READ_USERS
from matoolkit.worker.registry import function
from matoolkit.worker.signature import Secret

_FIELDS = ("id", "displayName", "userPrincipalName", "mailNickname")


@function("New-EntraUser", needs=(READ_USERS, CREATE_USERS))
def new_entra_user(
    context: Context,
    display_name: str,
    user_principal_name: str,
    mail_nickname: str,
    password: Secret | None = None,
    account_enabled: bool = True,
    force_change_password_next_sign_in: bool = True,
) -> dict[str, Any]:
    """Create an account; one that has the UPN already is left as it is."""
    graph: GraphClient = context.graph
    upn = user_name(user_principal_name, "UserPrincipalName")
    found = graph.find_user(upn, _FIELDS)
    if found is not None:
        return _described(found, is_created=False)
    wanted = {"displayName": display_name, "userPrincipalName": upn, "mailNickname": mail_nickname}
    profile = password_profile(context, password, must_change=force_change_password_next_sign_in)
    try:
        made = graph.create_user({**wanted, "accountEnabled": account_enabled, "passwordProfile": profile})
    except (Rejected, Unanswered) as refusal:
        return _made_meanwhile(context, wanted, refusal)
    # The answer has Graph's default properties, which do not include the nickname.
    return _described({**made, **wanted}, is_created=True)


def _made_meanwhile(context: Context, wanted: dict[str, str], refusal: Rejected | Unanswered) -> dict[str, Any]:
    """Return the account that caused the conflict, if it is the wanted one; else raise the refusal."""
    graph: GraphClient = context.graph
    upn = wanted["userPrincipalName"]
    if isinstance(refusal, ObjectTaken | Unanswered):
        found = until_seen(context.clock, lambda: graph.find_user(upn, _FIELDS))
    else:
        found = graph.find_user(upn, _FIELDS)
    if found is None:
        raise refusal
    # It was not there a moment ago, and an answer was lost: if it is what was asked for, it was made by that call.
    is_lost = isinstance(refusal, Unanswered) or refusal.after_loss
    is_ours = is_lost and all(found.get(name) == value for name, value in wanted.items())
    return _described(found, is_created=is_ours)


def _described(user: dict[str, Any], *, is_created: bool) -> dict[str, Any]:
    return {
        "Id": user["id"],
        "DisplayName": user.get("displayName"),
        "UserPrincipalName": user.get("userPrincipalName"),
        "MailNickname": user.get("mailNickname"),
        "Created": is_created,
    }


@function("Remove-EntraUser", needs=(READ_USERS, DELETE_USERS))
def remove_entra_user(context: Context, user_id: str, only_if_created: bool | None = True) -> bool:
    """Delete an account, unless OnlyIfCreated is given and false; one that is gone stays so."""
    key = user_key(user_id, "UserId")
    # Null does not mean yes: an account is not deleted if it is unknown who made it.
    if not only_if_created:
        return True
    graph: GraphClient = context.graph
    for _ in tries(context.clock):
        try:
            graph.delete_user(key)
        except ObjectMissing:
            # Gone, or too new to be seen: only the bin knows, and it knows ids alone.
            if _is_in_the_bin(graph, key):
                return True
            continue
        return True
    return True


def _is_in_the_bin(graph: GraphClient, key: str) -> bool:
    with suppress(Rejected):
        return is_object_id(key) and graph.is_deleted(key)
    return False
