"""Microsoft Graph, as far as the functions call it: users, membership, invitations, conversion."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from matoolkit.worker.tenant.calls import Answer, Refusal, Request
from matoolkit.worker.tenant.directory import Directory, Group, User, primary_of
from matoolkit.worker.tenant.properties import check_changed, check_created, check_password, selected

_BAD_REQUEST = HTTPStatus.BAD_REQUEST
_NO_CONTENT = Answer(HTTPStatus.NO_CONTENT)
_MOST_GROUPS_ASKED = 20

Handler = Callable[[Request, list[str]], Answer]


class Graph:
    """Answers calls on a directory."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._routes: tuple[tuple[str, str, Handler], ...] = (
            ("POST", "v1.0/users", self._create_user),
            ("GET", "v1.0/users/*", self._get_user),
            ("PATCH", "v1.0/users/*", self._change_user),
            ("DELETE", "v1.0/users/*", self._delete_user),
            ("GET", "v1.0/directory/deletedItems/*", self._get_deleted),
            ("GET", "v1.0/groups/*", self._get_group),
            ("POST", "v1.0/groups/*/members/$ref", self._add_member),
            ("DELETE", "v1.0/groups/*/members/*/$ref", self._remove_member),
            ("DELETE", "v1.0/groups/*/members/*", self._delete_member),
            ("POST", "v1.0/users/*/checkMemberGroups", self._check_member_groups),
            ("POST", "v1.0/invitations", self._invite),
            ("POST", "beta/users/*/convertExternalToInternalMemberUser", self._convert),
        )

    def answer(self, request: Request) -> Answer:
        """Answer a call, or refuse it."""
        for method, pattern, handler in self._routes:
            found = _matched(pattern, request.segments)
            if method == request.method and found is not None:
                return handler(request, found)
        raise Refusal(_BAD_REQUEST, "BadRequest", f"Resource not found for the segment '{request.segments[-1]}'.")

    def error(self, refusal: Refusal) -> Answer:
        """Return the body in which Graph tells an error."""
        moment = self._directory.clock.now().strftime("%Y-%m-%dT%H:%M:%S")
        identifier = str(uuid4())
        inner = {"date": moment, "request-id": identifier, "client-request-id": identifier}
        error: dict[str, Any] = {"code": refusal.code, "message": refusal.message, "innerError": inner}
        if refusal.details:
            error["details"] = list(refusal.details)
        return Answer(refusal.status, {"error": error})

    def _create_user(self, request: Request, _: list[str]) -> Answer:
        body = _object(request)
        check_created(body)
        self._check_upn_is_free(body["userPrincipalName"], None)
        user = self._directory.add_user(body)
        return Answer(HTTPStatus.CREATED, self._shown(user))

    def _get_user(self, request: Request, found: list[str]) -> Answer:
        return Answer(HTTPStatus.OK, selected(self._shown(self._user(found[0])), request.query.get("$select")))

    def _change_user(self, request: Request, found: list[str]) -> Answer:
        user = self._user(found[0])
        changes = _object(request)
        check_changed(changes)
        if "userPrincipalName" in changes:
            self._check_upn_is_free(changes["userPrincipalName"], user)
            self._directory.rename(user, changes["userPrincipalName"])
        if changes.pop("passwordProfile", None) is not None:
            user.passwords_set += 1
        user.properties.update(changes)
        return _NO_CONTENT

    def _delete_user(self, _: Request, found: list[str]) -> Answer:
        self._directory.delete_user(self._user(found[0]))
        return _NO_CONTENT

    def _get_deleted(self, _: Request, found: list[str]) -> Answer:
        user = self._directory.deleted.get(found[0].casefold())
        if user is None:
            raise missing(found[0])
        return Answer(HTTPStatus.OK, {"@odata.type": "#microsoft.graph.user", **self._shown(user)})

    def _get_group(self, _: Request, found: list[str]) -> Answer:
        group = self._group(found[0])
        return Answer(HTTPStatus.OK, {"id": group.id, "displayName": group.display_name})

    def _add_member(self, request: Request, found: list[str]) -> Answer:
        group = self._group(found[0])
        user = self._user(str(_object(request).get("@odata.id", "")).rpartition("/")[2])
        if user.id in group.members:
            message = (
                "One or more added object references already exist for the following modified properties: 'members'."
            )
            raise Refusal(_BAD_REQUEST, "Request_BadRequest", message)
        group.members[user.id] = self._directory.clock.now()
        return _NO_CONTENT

    def _remove_member(self, _: Request, found: list[str]) -> Answer:
        group = self._group(found[0])
        user = self._user(found[1])
        if user.id not in group.members:
            raise missing(user.id)
        del group.members[user.id]
        return _NO_CONTENT

    def _delete_member(self, _: Request, found: list[str]) -> Answer:
        """Without `/$ref` the call means the member itself: the user is deleted."""
        self._group(found[0])
        return self._delete_user(_, found[1:])

    def _check_member_groups(self, request: Request, found: list[str]) -> Answer:
        user = self._user(found[0])
        asked = _object(request).get("groupIds")
        if not isinstance(asked, list) or not 0 < len(asked) <= _MOST_GROUPS_ASKED:
            raise Refusal(_BAD_REQUEST, "Request_BadRequest", "Invalid value specified for groupIds.")
        groups = (self._directory.groups.get(str(one).casefold()) for one in asked)
        return Answer(
            HTTPStatus.OK,
            {"value": [one.id for one in groups if one is not None and self._directory.is_seen_member(one, user)]},
        )

    def _invite(self, request: Request, _: list[str]) -> Answer:
        body = _object(request)
        address, redirect = body.get("invitedUserEmailAddress"), body.get("inviteRedirectUrl")
        if not address or not redirect:
            message = "The inviteRedirectUrl and invitedUserEmailAddress properties are required."
            raise Refusal(_BAD_REQUEST, "BadRequest", message)
        user = self._user(str((body.get("invitedUser") or {}).get("id", "")))
        if user.properties.get("externalUserState") is None:
            user.properties["externalUserState"] = "PendingAcceptance"
        user.properties["otherMails"] = sorted({*user.properties["otherMails"], address})
        user.properties["userType"] = body.get("invitedUserType") or user.properties["userType"]
        user.invitation_mails += bool(body.get("sendInvitationMessage"))
        invitation = {
            "id": str(uuid4()),
            "inviteRedeemUrl": f"https://login.example/redeem?ticket={uuid4()}",
            "invitedUserEmailAddress": address,
            "invitedUserType": user.properties["userType"],
            "inviteRedirectUrl": redirect,
            "sendInvitationMessage": bool(body.get("sendInvitationMessage")),
            "status": "PendingAcceptance"
            if user.properties["externalUserState"] == "PendingAcceptance"
            else "Completed",
            "invitedUser": {"id": user.id},
        }
        self._directory.invitations.append(invitation)
        return Answer(HTTPStatus.CREATED, invitation)

    def _convert(self, request: Request, found: list[str]) -> Answer:
        user, body = self._user(found[0]), _object(request)
        if user.properties.get("externalUserState") is None and "#EXT#" not in user.upn:
            raise Refusal(_BAD_REQUEST, "Request_BadRequest", "The user is not an external user.")
        check_password(body.get("passwordProfile"))
        self._check_upn_is_free(str(body.get("userPrincipalName", "")), user)
        self._directory.rename(user, body["userPrincipalName"])
        user.properties |= {
            "externalUserState": None,
            "userType": "Member",
            "mail": body.get("mail") or user.properties.get("mail"),
        }
        user.passwords_set += 1
        details = {
            "displayName": user.properties["displayName"],
            "userPrincipalName": user.upn,
            "convertedToInternalDateTime": self._directory.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            "mail": self._shown(user)["mail"],
        }
        return Answer(HTTPStatus.OK, details)

    def _shown(self, user: User) -> dict[str, Any]:
        addresses = self._directory.addresses_for_graph(user)
        mail = user.properties.get("mail") or primary_of(addresses)
        return {"id": user.id, **user.properties, "proxyAddresses": list(addresses), "mail": mail}

    def _user(self, key: str) -> User:
        user = self._directory.user_for_graph(key)
        if user is None:
            raise missing(key)
        return user

    def _group(self, key: str) -> Group:
        group = self._directory.groups.get(key.casefold())
        if group is None:
            raise missing(key)
        return group

    def _check_upn_is_free(self, upn: str, but_for: User | None) -> None:
        owners = {
            "userPrincipalName": self._directory.owner_of_upn(upn),
            "proxyAddresses": self._directory.owner_of_address(f"smtp:{upn}"),
        }
        for target, owner in owners.items():
            if owner is not None and owner is not but_for:
                message = f"Another object with the same value for property {target} already exists."
                detail = {"code": "ObjectConflict", "message": message, "target": target}
                raise Refusal(_BAD_REQUEST, "Request_BadRequest", message, (detail,))


def missing(key: str) -> Refusal:
    """Return what Graph says of whatever it does not find, be it the object itself or one that it refers to."""
    message = f"Resource '{key}' does not exist or one of its queried reference-property objects are not present."
    return Refusal(HTTPStatus.NOT_FOUND, "Request_ResourceNotFound", message)


def _object(request: Request) -> dict[str, Any]:
    if not isinstance(request.body, Mapping):
        raise Refusal(_BAD_REQUEST, "BadRequest", "Unable to read JSON request payload.")
    return dict(request.body)


def _matched(pattern: str, segments: tuple[str, ...]) -> list[str] | None:
    """Return what stands at the places of a pattern that are open."""
    parts = pattern.split("/")
    if len(parts) != len(segments):
        return None
    if any(part not in ("*", segment) for part, segment in zip(parts, segments, strict=True)):
        return None
    return [segment for part, segment in zip(parts, segments, strict=True) if part == "*"]
