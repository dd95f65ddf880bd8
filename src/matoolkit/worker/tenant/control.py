"""How the tenant is looked at, filled and told what shall go wrong: everything under `/_tenant`. Needs no token."""

from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from matoolkit.worker.tenant.calls import Answer, Request
from matoolkit.worker.tenant.directory import Group, User
from matoolkit.worker.tenant.faults import Fault

if TYPE_CHECKING:
    from matoolkit.worker.tenant.tenant import Tenant


class Control:
    """Answers what people and tests ask of the tenant itself."""

    def __init__(self, tenant: "Tenant") -> None:
        self._tenant = tenant
        self._routes: dict[tuple[str, str], Callable[[Any], Any]] = {
            ("GET", "users"): self._users,
            ("POST", "users"): self._add_users,
            ("GET", "deleted-users"): self._deleted,
            ("GET", "groups"): self._groups,
            ("POST", "groups"): self._add_groups,
            ("GET", "invitations"): self._invitations,
            ("GET", "calls"): self._calls,
            ("GET", "faults"): self._faults,
            ("POST", "faults"): self._add_faults,
            ("DELETE", "faults"): self._clear_faults,
            ("GET", "lags"): self._lags,
            ("POST", "lags"): self._lags,
            ("POST", "expire-tokens"): self._expire_tokens,
        }

    def answer(self, request: Request) -> Answer:
        """Do what was asked for; what cannot be read is refused with words."""
        found = self._routes.get((request.method, "/".join(request.segments[1:])))
        if found is None:
            known = sorted(f"{method} /_tenant/{path}" for method, path in self._routes)
            return Answer(HTTPStatus.NOT_FOUND, {"error": "there is no such thing", "known": known})
        try:
            return Answer(HTTPStatus.OK, found(request.body))
        except (AttributeError, KeyError, TypeError, ValueError) as fault:
            return Answer(HTTPStatus.BAD_REQUEST, {"error": f"cannot be done: {fault}"})

    def _users(self, _: Any) -> Any:
        return [self._user(user) for user in self._tenant.directory.users.values()]

    def _deleted(self, _: Any) -> Any:
        return [self._user(user) for user in self._tenant.directory.deleted.values()]

    def _groups(self, _: Any) -> Any:
        return [_group(group) for group in self._tenant.directory.groups.values()]

    def _invitations(self, _: Any) -> Any:
        return self._tenant.directory.invitations

    def _calls(self, _: Any) -> Any:
        return [{"call": label, "status": status} for label, status in self._tenant.calls]

    def _add_users(self, body: Any) -> Any:
        return [self._user(self._added(dict(one))) for one in _listed(body)]

    def _added(self, user: dict[str, Any]) -> User:
        if self._tenant.directory.owner_of_upn(user["userPrincipalName"]):
            raise ValueError(f"{user['userPrincipalName']}: there is such a user already")
        return self._tenant.directory.add_user({"displayName": "", **user}, is_seeded=True)

    def _add_groups(self, body: Any) -> Any:
        add = self._tenant.directory.add_group
        return [_group(add(one["displayName"], one.get("id"), one.get("members", ()))) for one in _listed(body)]

    def _faults(self, _: Any) -> Any:
        return self._tenant.faults.shown()

    def _add_faults(self, body: Any) -> Any:
        for fault in [Fault.from_json(one) for one in _listed(body)]:
            self._tenant.faults.add(fault)
        return self._tenant.faults.shown()

    def _clear_faults(self, _: Any) -> Any:
        self._tenant.faults.clear()
        return []

    def _lags(self, body: Any) -> Any:
        lags = self._tenant.directory.lags
        for name, seconds in (body or {}).items():
            if name not in {"graph", "exchange", "sync"}:
                raise ValueError(f"there is no lag '{name}', only graph, exchange and sync")
            setattr(lags, name, float(seconds))
        return {"graph": lags.graph, "exchange": lags.exchange, "sync": lags.sync}

    def _expire_tokens(self, _: Any) -> Any:
        self._tenant.expire_tokens()
        return {}

    def _user(self, user: User) -> dict[str, Any]:
        return {
            "id": user.id,
            **user.properties,
            "emailAddresses": list(user.addresses[-1][1]),
            "exchange": user.mail,
            "groups": [group.id for group in self._tenant.directory.groups.values() if user.id in group.members],
            "passwordsSet": user.passwords_set,
            "invitationMails": user.invitation_mails,
        }


def _group(group: Group) -> dict[str, Any]:
    return {"id": group.id, "displayName": group.display_name, "mail": group.mail, "members": sorted(group.members)}


def _listed(body: Any) -> list[Any]:
    return body if isinstance(body, list) else [body]
