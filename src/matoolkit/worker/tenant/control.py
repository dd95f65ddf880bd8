"""How the tenant is looked at, filled and told what shall go wrong: everything under `/_tenant`. Needs no token."""

from collections.abc import Callable
from dataclasses import asdict
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, get_args

from matoolkit.worker.tenant.calls import Answer, Request
from matoolkit.worker.tenant.directory import Group, GroupKind, User
from matoolkit.worker.tenant.faults import Fault
from matoolkit.worker.tenant.licences import licences_of

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
            ("GET", "domains"): self._domains,
            ("POST", "domains"): self._domains,
            ("POST", "applications"): self._add_applications,
            ("GET", "moves"): self._moves,
            ("POST", "remote-mailboxes"): self._add_remote_mailboxes,
            ("GET", "calls"): self._calls,
            ("GET", "faults"): self._faults,
            ("POST", "faults"): self._add_faults,
            ("DELETE", "faults"): self._clear_faults,
            ("GET", "lags"): self._lags,
            ("POST", "lags"): self._lags,
            ("GET", "application"): self._application,
            ("POST", "application"): self._application,
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
        return [_group(self._added_group(one)) for one in _listed(body)]

    def _added_group(self, given: dict[str, Any]) -> Group:
        kind, licences = given.get("kind", "security"), given.get("licences", ())
        if kind not in get_args(GroupKind):
            raise ValueError(f"there are no groups '{kind}', only {', '.join(get_args(GroupKind))}")
        members = given.get("members", ())
        add = self._tenant.directory.add_group
        return add(given["displayName"], given.get("id"), members, kind=kind, licences=licences)

    def _domains(self, body: Any) -> Any:
        self._tenant.directory.domains |= {str(one).casefold() for one in body or ()}
        return sorted(self._tenant.directory.domains)

    def _add_applications(self, body: Any) -> Any:
        self._tenant.directory.applications |= {str(one["id"]).lower(): one["displayName"] for one in _listed(body)}
        return self._tenant.directory.applications

    def _moves(self, _: Any) -> Any:
        return [asdict(one) for one in self._tenant.directory.moves.values()]

    def _add_remote_mailboxes(self, body: Any) -> Any:
        remote = self._tenant.directory.remote_mailboxes
        remote |= {str(one["ExchangeGuid"]).lower(): {"LegacyExchangeDN": "", **one} for one in _listed(body)}
        return remote

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
            if name not in asdict(lags):
                raise ValueError(f"there is no lag '{name}', only {', '.join(asdict(lags))}")
            setattr(lags, name, float(seconds))
        return asdict(lags)

    def _application(self, body: Any) -> Any:
        self._tenant.application.take_away((body or {}).get("lacks", ()))
        return self._tenant.application.claims()

    def _expire_tokens(self, _: Any) -> Any:
        self._tenant.expire_tokens()
        return {}

    def _user(self, user: User) -> dict[str, Any]:
        return {
            "id": user.id,
            **user.properties,
            "emailAddresses": list(user.current),
            "exchange": user.mail,
            "licences": licences_of(self._tenant.directory, user),
            "groups": [group.id for group in self._tenant.directory.groups.values() if user.id in group.members],
            "passwordsSet": user.passwords_set,
            "invitationMails": user.invitation_mails,
            "sessionsRevoked": user.sessions_revoked,
            "mailsSent": [one["subject"] for one in user.sent],
        }


def _group(group: Group) -> dict[str, Any]:
    return {
        "id": group.id,
        "displayName": group.display_name,
        "mail": group.mail,
        "kind": group.kind,
        "licences": group.licences,
        "members": sorted(group.members),
    }


def _listed(body: Any) -> list[Any]:
    return body if isinstance(body, list) else [body]
