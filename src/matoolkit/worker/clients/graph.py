"""Microsoft Graph: the calls that the functions make, and nothing else."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import httpx

from matoolkit.worker.clients.api import Answer, Api, Effect, Verdict, by_status, told
from matoolkit.worker.clients.failures import (
    Forbidden,
    ObjectMissing,
    ObjectTaken,
    Rejected,
    TenantFailed,
    UnreadableAnswer,
)
from matoolkit.worker.clients.identifiers import is_object_id, object_id, path, user_key

_OK, _CREATED, _ACCEPTED, _NO_CONTENT = 200, 201, 202, 204
_FORBIDDEN, _NOT_FOUND = 403, 404
_MOST_PAGES = 1000
# Ids follow the names of collections; what begins with a dollar sign is no id.
_COLLECTIONS = "users|groups|members|servicePrincipals|deletedItems|temporaryAccessPassMethods"
_IDS = re.compile(rf"(/(?:{_COLLECTIONS})/)(?!\$)[^/]+")
_CHANGES, _ONCE = Effect.CHANGES, Effect.ONCE


class GraphClient:
    """Calls Graph for one tenant; a `key` is a user's object id or UPN. One for all threads."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def create_user(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Create a user and return it, with Graph's default properties alone."""
        return _identified(self._object("POST", "/v1.0/users", properties, status=_CREATED, effect=_CHANGES))

    def find_user(self, key: str, select: Sequence[str]) -> dict[str, Any] | None:
        """Return a user with some properties, or nothing if there is none, or none yet."""
        names = ",".join(dict.fromkeys(("id", *select)))
        found = self._found(f"{_user(key)}?$select={names}")
        return None if found is None else _identified(found)

    def any_user(self) -> dict[str, Any] | None:
        """Return some user, to see whether users can be read at all."""
        return next(iter(self._pages("/v1.0/users?$top=1&$select=id,displayName,userPrincipalName")), None)

    def any_group(self) -> dict[str, Any] | None:
        """Return some group, to see whether groups can be read at all."""
        return next(iter(self._pages("/v1.0/groups?$top=1&$select=id,displayName")), None)

    def change_user(self, key: str, changes: Mapping[str, Any]) -> None:
        """Change properties of a user."""
        self._call("PATCH", _user(key), changes, status=_NO_CONTENT, effect=_CHANGES)

    def delete_user(self, key: str) -> None:
        """Delete a user."""
        self._call("DELETE", _user(key), status=_NO_CONTENT, effect=_CHANGES)

    def is_deleted(self, identifier: str) -> bool:
        """Whether an object is in the bin."""
        return self._found(path("/v1.0/directory/deletedItems/{}", object_id(identifier, "id"))) is not None

    def find_group(self, group: str) -> dict[str, Any] | None:
        """Return a group with what says where its members are changed."""
        names = "id,displayName,mailEnabled,groupTypes,onPremisesSyncEnabled"
        return self._found(path("/v1.0/groups/{}", object_id(group, "GroupId")) + f"?$select={names}")

    def add_member(self, group: str, user: str) -> None:
        """Add a user, given by object id, to a group."""
        place = path("/v1.0/groups/{}/members/$ref", object_id(group, "GroupId"))
        self._call("POST", place, self._reference(object_id(user, "UserId")), status=_NO_CONTENT, effect=_CHANGES)

    def remove_member(self, group: str, user: str) -> None:
        """Take a user, given by object id, out of a group. Without `/$ref` this would delete the user."""
        place = path("/v1.0/groups/{}/members/{}/$ref", object_id(group, "GroupId"), object_id(user, "UserId"))
        self._call("DELETE", place, status=_NO_CONTENT, effect=_CHANGES)

    def is_inside(self, group: str, key: str) -> bool | None:
        """Whether a user or application is in a group, directly or through others; nothing if there is no such one."""
        asked = object_id(group, "GroupId")
        for place in _principals(key):
            try:
                answer = self._object("POST", f"{place}/checkMemberGroups", {"groupIds": [asked]})
            except ObjectMissing:
                continue
            except Forbidden:
                if place.startswith("/v1.0/users"):
                    raise
                return None
            found = answer.get("value")
            if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
                raise UnreadableAnswer("Graph's answer does not tell the groups")
            return asked in {one.lower() for one in found}
        return None

    def is_member(self, group: str, key: str) -> bool | None:
        """Whether a user or application is itself a member of a group; nothing if there is no such one."""
        asked = object_id(group, "GroupId")
        for place in _principals(key):
            try:
                groups = self._pages(f"{place}/memberOf?$select=id&$top=999")
                return any(str(one.get("id")).lower() == asked for one in groups)
            except ObjectMissing:
                continue
            except Forbidden:
                if place.startswith("/v1.0/users"):
                    raise
                return None
        return None

    def invite(self, invitation: Mapping[str, Any]) -> dict[str, Any]:
        """Invite a user, and return the invitation."""
        return self._object("POST", "/v1.0/invitations", invitation, status=_CREATED, effect=_ONCE)

    def convert_to_internal(self, key: str, details: Mapping[str, Any]) -> None:
        """Make an external user an internal one. Graph has this call in beta only."""
        target = path("/beta/users/{}/convertExternalToInternalMemberUser", user_key(key, "UserId"))
        self._object("POST", target, details, effect=_CHANGES)

    def subscribed_skus(self) -> list[dict[str, Any]]:
        """List the licences that the tenant has."""
        return list(self._pages("/v1.0/subscribedSkus"))

    def assign_licences(self, key: str, added: Sequence[Mapping[str, Any]], removed: Sequence[str]) -> None:
        """Give licences to a user, and take some away."""
        body = {"addLicenses": list(added), "removeLicenses": list(removed)}
        self._object("POST", f"{_user(key)}/assignLicense", body, effect=_CHANGES)

    def find_manager(self, key: str) -> str | None:
        """Return the object id of a user's manager."""
        found = self._found(f"{_user(key)}/manager?$select=id")
        return None if found is None else str(found.get("id"))

    def set_manager(self, key: str, manager: str) -> None:
        """Give a user a manager, who is named by object id."""
        body = self._reference(object_id(manager, "ManagerId"), "users")
        self._call("PUT", f"{_user(key)}/manager/$ref", body, status=_NO_CONTENT, effect=_CHANGES)

    def remove_manager(self, key: str) -> None:
        """Leave a user without manager."""
        self._call("DELETE", f"{_user(key)}/manager/$ref", status=_NO_CONTENT, effect=_CHANGES)

    def revoke_sessions(self, key: str) -> None:
        """Make everybody who is signed in as a user sign in again."""
        self._object("POST", f"{_user(key)}/revokeSignInSessions", effect=_CHANGES)

    def passes(self, key: str) -> list[dict[str, Any]]:
        """List a user's Temporary Access Passes, without what they are."""
        return list(self._pages(f"{_user(key)}/authentication/temporaryAccessPassMethods"))

    def create_pass(self, key: str, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Make a Temporary Access Pass, and return it with what it is."""
        target = f"{_user(key)}/authentication/temporaryAccessPassMethods"
        return self._object("POST", target, properties, status=_CREATED, effect=_ONCE)

    def delete_pass(self, key: str, identifier: str) -> None:
        """Let a Temporary Access Pass no longer be good."""
        target = f"{_user(key)}/authentication/temporaryAccessPassMethods/"
        self._call("DELETE", target + path("{}", identifier), status=_NO_CONTENT, effect=_CHANGES)

    def send_mail(self, sender: str, message: Mapping[str, Any]) -> None:
        """Send a mail from a mailbox, and keep it among what was sent."""
        body = {"message": dict(message), "saveToSentItems": True}
        self._call("POST", f"{_user(sender)}/sendMail", body, status=_ACCEPTED, effect=_ONCE)

    def was_sent(self, sender: str, message_id: str) -> bool:
        """Whether a mailbox has sent a mail with an id."""
        place = f"{_user(sender)}/mailFolders/sentitems/messages"
        asked = path("?$select=id&$filter=internetMessageId%20eq%20'{}'", message_id)
        return any(self._pages(place + asked))

    def _reference(self, identifier: str, collection: str = "directoryObjects") -> dict[str, str]:
        return {"@odata.id": f"{self._api.origin}{path('/v1.0/{}/{}', collection, identifier)}"}

    def _found(self, target: str) -> dict[str, Any] | None:
        try:
            return self._object("GET", target)
        except ObjectMissing:
            return None

    def _pages(self, target: str) -> Iterator[dict[str, Any]]:
        """Read a list, page after page."""
        for _ in range(_MOST_PAGES):
            page = self._object("GET", target)
            found = page.get("value")
            if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
                raise UnreadableAnswer("Graph's answer is not a list of objects")
            yield from found
            if not page.get("@odata.nextLink"):
                return
            target = self._api.next_target(page["@odata.nextLink"])
        raise UnreadableAnswer("Graph's list has no end")

    def _object(
        self, method: str, target: str, body: Any = None, *, status: int = _OK, effect: Effect = Effect.READS
    ) -> dict[str, Any]:
        return self._call(method, target, body, status=status, effect=effect).object()

    def _call(
        self, method: str, target: str, body: Any = None, *, status: int, effect: Effect = Effect.READS
    ) -> Answer:
        answer = self._api.send(method, target, body, effect=effect)
        if answer.response.status_code != status:
            raise _failure(method, _operation(target), answer)
        return answer


def judged(response: httpx.Response) -> Verdict:
    """Judge an answer: Graph may have given up because somebody changed the same object at the same moment."""
    if response.status_code == httpx.codes.CONFLICT and b"Directory_ConcurrencyViolation" in response.content:
        return Verdict.PASSING
    return by_status(response)


def _user(key: str) -> str:
    return path("/v1.0/users/{}", user_key(key, "UserId"))


def _principals(key: str) -> tuple[str, ...]:
    """Where to ask about somebody: an object id may also be that of an application."""
    checked = user_key(key, "UserId")
    applications = (path("/v1.0/servicePrincipals/{}", checked),) if is_object_id(checked) else ()
    return (_user(checked), *applications)


def _identified(user: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(user.get("id"), str) or not user["id"]:
        raise UnreadableAnswer("Graph's answer does not tell whose it is")
    return user


def _operation(target: str) -> str:
    """Name the call and not the object, so that failures with one cause read alike."""
    return _IDS.sub(r"\1{id}", target.partition("?")[0])


def _failure(method: str, target: str, answer: Answer) -> TenantFailed:
    status, attempts = answer.response.status_code, answer.attempts
    if answer.response.is_success:
        return UnreadableAnswer(f"Graph answered {method} {target} with status {status}", attempts=attempts)
    error = _error(answer)
    message = f"Graph: {method} {target}: {told(error.get('message'))} ({told(error.get('code') or status, 60)})"
    if status == _NOT_FOUND:
        return ObjectMissing(message, attempts=attempts)
    if status == _FORBIDDEN:
        return Forbidden(message, api="Graph", attempts=attempts)
    kind = ObjectTaken if "ObjectConflict" in _detail_codes(error) else Rejected
    return kind(message, status=status, attempts=attempts, after_loss=answer.after_loss)


def _error(answer: Answer) -> Mapping[str, Any]:
    try:
        error = answer.object().get("error")
    except UnreadableAnswer:
        error = None
    return error if isinstance(error, dict) else {}


def _detail_codes(error: Mapping[str, Any]) -> set[str]:
    details = error.get("details")
    return {str(one.get("code")) for one in details if isinstance(one, dict)} if isinstance(details, list) else set()
