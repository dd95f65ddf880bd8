"""What an account is like: its name, whether it may sign in, its attributes."""

import re
from typing import Any

from matoolkit.worker.clients.failures import ObjectMissing, Rejected
from matoolkit.worker.clients.graph import GraphClient
from matoolkit.worker.clients.identifiers import is_object_id, user_key
from matoolkit.worker.context import Context
from matoolkit.worker.failures import InvalidParameters
from matoolkit.worker.functions.accounts import user_name
from matoolkit.worker.functions.lag import once_there
from matoolkit.worker.functions.needs import CHANGE_USERS, READ_USERS
from matoolkit.worker.registry import function

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@function("Set-EntraUserUPN", needs=(READ_USERS, CHANGE_USERS))
def set_entra_user_upn(context: Context, user_id: str, new_user_principal_name: str) -> bool:
    """Change the name with which a user signs in."""
    key = user_key(user_id, "UserId")
    upn = user_name(new_user_principal_name, "NewUserPrincipalName")
    return once_there(context.clock, lambda: _rename(context.graph, key, upn))


def _rename(graph: GraphClient, key: str, upn: str) -> bool:
    try:
        graph.change_user(key, {"userPrincipalName": upn})
    except ObjectMissing:
        # After a rename the old name finds nothing.
        if is_object_id(key) or graph.find_user(upn, ()) is None:
            raise
    except Rejected:
        found = graph.find_user(key, ("userPrincipalName",))
        if found is None or str(found.get("userPrincipalName")).casefold() != upn.casefold():
            raise
    return True


@function("Set-EntraUserEnabled", needs=(CHANGE_USERS,))
def set_entra_user_enabled(context: Context, user_id: str, enabled: bool) -> bool:
    """Let a user sign in, or no longer."""
    return _change(context, user_id, {"accountEnabled": enabled})


@function("Set-EntraUserAttributes", needs=(CHANGE_USERS,))
def set_entra_user_attributes(context: Context, user_id: str, attributes: dict[str, Any]) -> bool:
    """Write attributes of a user; null empties one."""
    problems = [
        f"Attributes has a name that no attribute has: {name[:60]!r}" for name in attributes if not _is_name(name)
    ]
    if any(name.casefold() == "passwordprofile" for name in attributes):
        problems.append("Attributes may not hold a password: it would be seen in logs and tables")
    if problems:
        raise InvalidParameters("Set-EntraUserAttributes", problems)
    return _change(context, user_id, attributes) if attributes else True


def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def _change(context: Context, user_id: str, changes: dict[str, Any]) -> bool:
    key = user_key(user_id, "UserId")
    graph: GraphClient = context.graph
    once_there(context.clock, lambda: graph.change_user(key, changes))
    return True
