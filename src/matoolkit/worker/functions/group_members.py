"""Who is in which group.

Graph's refusals are ambiguous: the same 404 means no such group, no such user and no such member. So the state is read
back, and a refusal counts only if things are not as they should be. What is read back is the membership itself: being
in a group through another one does not make a refusal a success.
"""

from collections.abc import Callable
from typing import Any

from matoolkit.worker.clients.failures import ObjectMissing, Rejected, TenantFailed, Unanswered
from matoolkit.worker.clients.graph import GraphClient
from matoolkit.worker.clients.identifiers import is_object_id, object_id, user_key
from matoolkit.worker.context import Context
from matoolkit.worker.functions.accounts import seen_user
from matoolkit.worker.functions.lag import tries
from matoolkit.worker.functions.needs import CHANGE_MEMBERS, READ_GROUPS, READ_USERS
from matoolkit.worker.registry import function

_CONFLICT = 409
# These errors may pass in a moment: a member is not shown yet, a group or user is too new.
_PASSING = ("already exist", "not exist", "don't exist")


@function("Add-EntraGroupMember", needs=(READ_USERS, READ_GROUPS, CHANGE_MEMBERS))
def add_entra_group_member(context: Context, group_id: str, user_id: str) -> bool:
    """Add a user to a group; one who is in it stays so."""
    graph: GraphClient = context.graph
    return _settle(context, group_id, user_id, graph.add_member, should_be_member=True)


@function("Remove-EntraGroupMember", needs=(READ_USERS, READ_GROUPS, CHANGE_MEMBERS))
def remove_entra_group_member(context: Context, group_id: str, user_id: str) -> bool:
    """Take a user out of a group; the account is left as it is."""
    graph: GraphClient = context.graph
    return _settle(context, group_id, user_id, graph.remove_member, should_be_member=False)


@function("Test-EntraGroupMembership", needs=(READ_USERS, READ_GROUPS))
def check_entra_membership(context: Context, group_id: str, user_id: str) -> dict[str, Any]:
    """Say whether a user is in a group, directly or through another."""
    group, key = object_id(group_id, "GroupId"), user_key(user_id, "UserId")
    graph: GraphClient = context.graph
    found = graph.is_inside(group, key)
    data = {"IsMember": bool(found), "UserFound": found is not None, "GroupId": group, "UserId": key}
    return {"complete": bool(found), "data": data}


def _settle(
    context: Context,
    group_id: str,
    user_id: str,
    act: Callable[[str, str], None],
    *,
    should_be_member: bool,
) -> bool:
    group = object_id(group_id, "GroupId")
    user = _object_id_of(context, user_id)
    graph: GraphClient = context.graph
    for is_last in tries(context.clock):
        try:
            act(group, user)
        except (ObjectMissing, Rejected, Unanswered) as refusal:
            place = graph.find_group(group)
            if place is None:
                # Fail at once: waiting for a missing group would cost every member of a batch half a minute.
                raise ObjectMissing(f"there is no group {group}") from None
            found = graph.is_member(group, user)
            if found is should_be_member:
                return True
            _require_changeable(place, "Add" if should_be_member else "Remove")
            if is_last or _is_final(refusal):
                raise _explained(refusal, user, found) from None
        else:
            return True
    raise AssertionError("the last try returns or raises")


def _object_id_of(context: Context, user_id: str) -> str:
    """Return the object id of a user: a group knows no names."""
    key = user_key(user_id, "UserId")
    return key if is_object_id(key) else object_id(str(seen_user(context, key, ("id",)).get("id")), "UserId")


def _require_changeable(found: dict[str, Any], verb: str) -> None:
    """Say who else changes the members of a group, if Graph never will."""
    group, types = found.get("id"), found.get("groupTypes") or []
    if found.get("mailEnabled") and "Unified" not in types:
        why = f"is a distribution list or mail-enabled security group: {verb}-ExchangeGroupMember changes its members"
        raise Rejected(f"group {group} {why}")
    if "DynamicMembership" in types:
        raise Rejected(f"group {group} takes its members by a rule: they cannot be changed by hand")
    if found.get("onPremisesSyncEnabled"):
        raise Rejected(f"group {group} is synchronised from another directory: its members are changed there")


def _is_final(refusal: TenantFailed) -> bool:
    if isinstance(refusal, Unanswered):
        return not refusal.is_over
    is_passing = isinstance(refusal, ObjectMissing) or any(words in refusal.message for words in _PASSING)
    return not is_passing and not (isinstance(refusal, Rejected) and refusal.status == _CONFLICT)


def _explained(refusal: TenantFailed, user: str, found: bool | None) -> TenantFailed:
    return ObjectMissing(f"there is no user {user}") if found is None else refusal
