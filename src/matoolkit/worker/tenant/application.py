"""What the application that calls has been granted, and which calls it may make with that.

At first it has everything that the built-in functions need, each in its least form. What it lacks is told by name.
"""

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

from matoolkit.worker.functions import built_in
from matoolkit.worker.functions.needs import (
    ASSIGN_LICENCES,
    CHANGE_MEMBERS,
    CHANGE_PASSES,
    CHANGE_PASSWORDS,
    CHANGE_RECIPIENTS,
    CHANGE_USERS,
    CONVERT,
    CREATE_USERS,
    DELETE_USERS,
    INVITE,
    READ_GROUPS,
    READ_LICENCES,
    READ_RECIPIENTS,
    READ_USERS,
    REVOKE_SESSIONS,
    SEND_MAIL,
)
from matoolkit.worker.needs import ROLE_IDS, Need, NeedKind
from matoolkit.worker.tenant.calls import Request
from matoolkit.worker.tenant.lookup import matched

_TENANT = "99999999-aaaa-4bbb-8ccc-000000000001"
# Other calls of Graph are let through.
_GRAPH: tuple[tuple[str, str, Need], ...] = (
    ("GET", "v1.0/users", READ_USERS),
    ("GET", "v1.0/users/*", READ_USERS),
    ("POST", "v1.0/users", CREATE_USERS),
    ("PATCH", "v1.0/users/*", CHANGE_USERS),
    ("DELETE", "v1.0/users/*", DELETE_USERS),
    ("GET", "v1.0/groups", READ_GROUPS),
    ("GET", "v1.0/groups/*", READ_GROUPS),
    ("POST", "v1.0/groups/*/members/$ref", CHANGE_MEMBERS),
    ("DELETE", "v1.0/groups/*/members/*/$ref", CHANGE_MEMBERS),
    ("POST", "v1.0/users/*/checkMemberGroups", READ_USERS),
    ("GET", "v1.0/users/*/memberOf", READ_USERS),
    ("GET", "v1.0/subscribedSkus", READ_LICENCES),
    ("POST", "v1.0/users/*/assignLicense", ASSIGN_LICENCES),
    ("GET", "v1.0/users/*/manager", READ_USERS),
    ("PUT", "v1.0/users/*/manager/$ref", CHANGE_USERS),
    ("DELETE", "v1.0/users/*/manager/$ref", CHANGE_USERS),
    ("POST", "v1.0/users/*/revokeSignInSessions", REVOKE_SESSIONS),
    ("GET", "v1.0/users/*/authentication/temporaryAccessPassMethods", CHANGE_PASSES),
    ("POST", "v1.0/users/*/authentication/temporaryAccessPassMethods", CHANGE_PASSES),
    ("DELETE", "v1.0/users/*/authentication/temporaryAccessPassMethods/*", CHANGE_PASSES),
    ("POST", "v1.0/users/*/sendMail", SEND_MAIL),
    ("POST", "v1.0/invitations", INVITE),
    ("POST", "beta/users/*/convertExternalToInternalMemberUser", CONVERT),
)


class Application:
    """The worker's application, as Entra and Exchange know it."""

    def __init__(self) -> None:
        self.granted = {kind: set(names) for kind, names in _everything().items()}

    def take_away(self, names: Collection[str]) -> None:
        """Take permissions or roles from the application."""
        unknown = set(names) - set().union(*self.granted.values())
        if unknown:
            raise ValueError(f"it does not have {', '.join(sorted(unknown))}")
        for granted in self.granted.values():
            granted.difference_update(names)

    def claims(self) -> dict[str, dict[str, Any]]:
        """Return what the tokens for both APIs say."""
        wids = [ROLE_IDS[name] for name in sorted(self.granted[NeedKind.ROLE])]
        same = {"tid": _TENANT, "app_displayname": "simulated", "wids": wids}
        return {
            "graph": {**same, "roles": sorted(self.granted[NeedKind.GRAPH])},
            "exchange": {**same, "roles": sorted(self.granted[NeedKind.EXCHANGE])},
        }

    def may(self, request: Request) -> bool:
        """Whether it has been granted what a call needs."""
        return all(not self.granted[need.kind].isdisjoint(need.any_of) for need in _needs(request))


@cache
def _everything() -> dict[NeedKind, frozenset[str]]:
    needs = [need for function in built_in() for need in function.needs]
    return {kind: frozenset(need.any_of[0] for need in needs if need.kind is kind) for kind in NeedKind}


def _needs(request: Request) -> Iterator[Need]:
    if request.segments[0] == "adminapi":
        yield from READ_RECIPIENTS if request.cmdlet.startswith(("Get-", "Test-")) else CHANGE_RECIPIENTS
        return
    is_password = (
        request.method == "PATCH" and isinstance(request.body, dict) and [*request.body] == ["passwordProfile"]
    )
    for method, pattern, need in _GRAPH:
        if method == request.method and matched(pattern, request.segments) is not None:
            yield CHANGE_PASSWORDS if is_password else need
