"""How people get in, and no longer get in: passes, passwords, sessions; and who their manager is."""

from typing import Any

from matoolkit.worker.clients.failures import ObjectMissing, Rejected, Unanswered
from matoolkit.worker.clients.graph import GraphClient
from matoolkit.worker.clients.identifiers import is_object_id, user_key
from matoolkit.worker.context import Context
from matoolkit.worker.failures import InvalidParameters
from matoolkit.worker.functions.accounts import password_profile, seen_user
from matoolkit.worker.functions.lag import once_there, wait_out_loss
from matoolkit.worker.functions.mails import message_id, send_once
from matoolkit.worker.functions.needs import (
    CHANGE_PASSES,
    CHANGE_PASSWORDS,
    CHANGE_USERS,
    READ_SENT_MAIL,
    READ_USERS,
    REVOKE_SESSIONS,
    SEND_MAIL,
)
from matoolkit.worker.registry import function
from matoolkit.worker.signature import Secret

_PASS = "New-EntraTemporaryAccessPass"  # noqa: S105 - the name of a function
_SHORTEST, _LONGEST = 10, 43_200
# Why Graph calls a pass unusable that still does what it was made for.
_NOT_NOW = frozenset({"NotYetValid", "OneTimeUsed"})


@function(_PASS, needs=(READ_USERS, CHANGE_PASSES, SEND_MAIL, READ_SENT_MAIL))
def new_entra_temporary_access_pass(
    context: Context,
    user_id: str,
    sender: str,
    recipients: list[str],
    lifetime_in_minutes: int = 60,
    is_usable_once: bool = True,
    start_date_time: str | None = None,
) -> dict[str, Any]:
    """Make a Temporary Access Pass and mail it; it is never returned, and a pass that was mailed stays."""
    if not _SHORTEST <= lifetime_in_minutes <= _LONGEST:
        raise InvalidParameters(_PASS, [f"LifetimeInMinutes has to be from {_SHORTEST} to {_LONGEST:,}"])
    graph: GraphClient = context.graph
    mailbox = user_key(sender, "Sender")
    user = seen_user(context, user_id, ("id", "displayName"))
    key = str(user["id"])
    for one in graph.passes(key):
        if _serves(one) and graph.was_sent(mailbox, message_id(mailbox, str(one.get("id")))):
            return _described(one, recipients)
        # It is over; or Graph told what it is to a job that did not get as far as mailing it.
        graph.delete_pass(key, str(one.get("id")))
    wanted = {"lifetimeInMinutes": lifetime_in_minutes, "isUsableOnce": is_usable_once}
    made = _made(context, key, {**wanted, **({"startDateTime": start_date_time} if start_date_time else {})})
    value = str(made.get("temporaryAccessPass"))
    context.secrets.conceal(value)
    body = f"The Temporary Access Pass of {user.get('displayName')} is {value}, for {lifetime_in_minutes} minutes."
    send_once(context, _PASS, mailbox, recipients, "Your Temporary Access Pass", body, key=str(made.get("id")))
    return _described(made, recipients)


def _serves(one: dict[str, Any]) -> bool:
    """Tell whether a pass can be used, will be, or has been: a job that comes again makes no second one."""
    return bool(one.get("isUsable")) or one.get("methodUsabilityReason") in _NOT_NOW


def _made(context: Context, key: str, properties: dict[str, Any]) -> dict[str, Any]:
    """Make a pass; if no answer came, its value is unknown, and another one replaces it."""
    graph: GraphClient = context.graph
    try:
        return graph.create_pass(key, properties)
    except Unanswered as lost:
        wait_out_loss(context.clock, lost)
        for one in graph.passes(key):
            graph.delete_pass(key, str(one.get("id")))
        return graph.create_pass(key, properties)


def _described(one: dict[str, Any], recipients: list[str]) -> dict[str, Any]:
    return {
        "Id": one.get("id"),
        "StartDateTime": one.get("startDateTime"),
        "LifetimeInMinutes": one.get("lifetimeInMinutes"),
        "SentTo": recipients,
    }


@function("Set-EntraUserPassword", needs=(CHANGE_PASSWORDS,))
def set_entra_user_password(
    context: Context, user_id: str, password: Secret | None = None, force_change_password_next_sign_in: bool = True
) -> bool:
    """Give an account another password; without one, a random password that is never shown."""
    graph: GraphClient = context.graph
    key = user_key(user_id, "UserId")
    profile = password_profile(context, password, must_change=force_change_password_next_sign_in)
    once_there(context.clock, lambda: graph.change_user(key, {"passwordProfile": profile}))
    return True


@function("Revoke-EntraUserSessions", needs=(REVOKE_SESSIONS,))
def revoke_entra_user_sessions(context: Context, user_id: str) -> bool:
    """Make everybody who is signed in as a user sign in again."""
    graph: GraphClient = context.graph
    key = user_key(user_id, "UserId")
    once_there(context.clock, lambda: graph.revoke_sessions(key))
    return True


@function("Set-EntraUserManager", needs=(READ_USERS, CHANGE_USERS))
def set_entra_user_manager(context: Context, user_id: str, manager_id: str | None) -> bool:
    """Give a user a manager; null leaves the user without one."""
    graph: GraphClient = context.graph
    key = str(seen_user(context, user_id, ("id",))["id"])
    wanted = None if manager_id is None else user_key(manager_id, "ManagerId")
    if wanted is not None and not is_object_id(wanted):
        wanted = str(seen_user(context, wanted, ("id",))["id"])
    if graph.find_manager(key) == wanted:
        return True
    try:
        if wanted is None:
            graph.remove_manager(key)
        else:
            graph.set_manager(key, wanted)
    except (ObjectMissing, Rejected, Unanswered):
        if graph.find_manager(key) != wanted:
            raise
    return True
