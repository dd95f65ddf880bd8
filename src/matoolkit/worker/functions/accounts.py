"""What several functions need to know of an account: how it is found, and the password profile of a new one."""

from collections.abc import Sequence
from typing import Any

from matoolkit.worker.clients.failures import InvalidIdentifier, ObjectMissing
from matoolkit.worker.clients.graph import GraphClient
from matoolkit.worker.clients.identifiers import is_object_id, user_key
from matoolkit.worker.context import Context
from matoolkit.worker.functions.lag import until_seen
from matoolkit.worker.functions.passwords import chosen_password


def user_name(value: str, name: str) -> str:
    """Check a user principal name."""
    checked = user_key(value, name)
    if is_object_id(checked):
        raise InvalidIdentifier(f"{name} has to be a user principal name, not an object id")
    return checked


def seen_user(context: Context, user_id: str, select: Sequence[str]) -> dict[str, Any]:
    """Return an account, waiting for it if it is not there yet."""
    graph: GraphClient = context.graph
    key = user_key(user_id, "UserId")
    found = until_seen(context.clock, lambda: graph.find_user(key, select))
    if found is None:
        raise ObjectMissing(f"there is no user {key}")
    return found


def password_profile(context: Context, password: str | None, *, must_change: bool) -> dict[str, Any]:
    """Return the profile of the given password, or of a random one that is never shown."""
    return {"password": chosen_password(context, password), "forceChangePasswordNextSignIn": must_change}
