"""Groups in Graph. It keeps the members of security groups and Microsoft 365 groups, and only shows those of others."""

from http import HTTPStatus
from itertools import islice
from typing import Any

from matoolkit.worker.tenant.calls import Answer, Refusal, Request
from matoolkit.worker.tenant.directory import Group
from matoolkit.worker.tenant.licences import apply_licences
from matoolkit.worker.tenant.lookup import NO_CONTENT, Lookup, Routes, bad, body_of, missing

_MOST_GROUPS_ASKED = 20


class Memberships(Lookup):
    """Who is in which group."""

    @property
    def routes(self) -> Routes:
        """The calls that are answered here."""
        return (
            ("GET", "v1.0/groups", self._list_groups),
            ("GET", "v1.0/groups/*", self._get_group),
            ("POST", "v1.0/groups/*/members/$ref", self._add),
            ("DELETE", "v1.0/groups/*/members/*/$ref", self._remove),
            ("POST", "v1.0/users/*/checkMemberGroups", self._check_user),
            ("POST", "v1.0/servicePrincipals/*/checkMemberGroups", self._check_application),
            ("GET", "v1.0/users/*/memberOf", self._groups_of_user),
            ("GET", "v1.0/servicePrincipals/*/memberOf", self._groups_of_application),
        )

    def _list_groups(self, request: Request, _: list[str]) -> Answer:
        most = int(request.query.get("$top", "100"))
        listed = [self._shown_group(group, request) for group in islice(self.directory.groups.values(), most)]
        return Answer(HTTPStatus.OK, {"value": listed})

    def _get_group(self, request: Request, found: list[str]) -> Answer:
        return Answer(HTTPStatus.OK, self._shown_group(self.group(found[0]), request))

    def _shown_group(self, group: Group, request: Request) -> dict[str, Any]:
        types = ["Unified"] if group.kind == "Microsoft 365" else []
        shown = {
            "id": group.id,
            "displayName": group.display_name,
            "mail": group.mail or None,
            "mailEnabled": bool(group.mail),
            "securityEnabled": "security" in group.kind,
            "groupTypes": types,
            "onPremisesSyncEnabled": None,
        }
        select = request.query.get("$select")
        return {name: shown[name] for name in (select.split(",") if select else shown)}

    def _add(self, request: Request, found: list[str]) -> Answer:
        group = self._changeable(found[0])
        member = self.object_id(str(body_of(request).get("@odata.id", "")).rpartition("/")[2])
        if member in group.members:
            raise bad(
                "One or more added object references already exist for the following modified properties: 'members'."
            )
        group.members[member] = self.directory.clock.now()
        if member in self.directory.users:
            apply_licences(self.directory, [self.directory.users[member]])
        return NO_CONTENT

    def _remove(self, _: Request, found: list[str]) -> Answer:
        group = self._changeable(found[0])
        member = self.object_id(found[1])
        if member not in group.members:
            raise missing(member)
        del group.members[member]
        return NO_CONTENT

    def _changeable(self, key: str) -> Group:
        group = self.group(key)
        if group.is_in_exchange:
            raise bad("Cannot Update a mail-enabled security groups and or distribution list.")
        return group

    def _check_user(self, request: Request, found: list[str]) -> Answer:
        return self._checked(request, self.user(found[0]).id)

    def _check_application(self, request: Request, found: list[str]) -> Answer:
        return self._checked(request, self._application(found[0]))

    def _checked(self, request: Request, identifier: str) -> Answer:
        """Look through nested groups, too."""
        asked = body_of(request).get("groupIds")
        if not isinstance(asked, list) or not 0 < len(asked) <= _MOST_GROUPS_ASKED:
            raise Refusal(HTTPStatus.BAD_REQUEST, "Request_BadRequest", "Invalid value specified for groupIds.")
        groups = (self.directory.groups.get(str(one).casefold()) for one in asked)
        inside = [one.id for one in groups if one is not None and self.directory.is_seen_inside(one, identifier)]
        return Answer(HTTPStatus.OK, {"value": inside})

    def _groups_of_user(self, request: Request, found: list[str]) -> Answer:
        return self._direct(request, self.user(found[0]).id)

    def _groups_of_application(self, request: Request, found: list[str]) -> Answer:
        return self._direct(request, self._application(found[0]))

    def _direct(self, request: Request, identifier: str) -> Answer:
        groups = self.directory.groups.values()
        ids = sorted(one.id for one in groups if self.directory.is_seen_member(one, identifier))
        size, first = int(request.query.get("$top", "100")), int(request.query.get("$skiptoken", "0"))
        body: dict[str, Any] = {
            "value": [{"@odata.type": "#microsoft.graph.group", "id": one} for one in ids[first : first + size]]
        }
        if len(ids) > first + size:
            path = request.target.partition("?")[0]
            more = f"{path}?$select=id&$top={size}&$skiptoken={first + size}"
            body["@odata.nextLink"] = f"http://{request.header('Host')}{more}"
        return Answer(HTTPStatus.OK, body)

    def _application(self, key: str) -> str:
        if key.casefold() not in self.directory.applications:
            raise missing(key)
        return key.casefold()
