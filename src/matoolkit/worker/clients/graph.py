"""Microsoft Graph: the calls that the functions make, and nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from matoolkit.worker.clients.api import Answer, Api, told
from matoolkit.worker.clients.failures import ObjectMissing, ObjectTaken, Rejected, TenantFailed, UnreadableAnswer
from matoolkit.worker.clients.identifiers import object_id, path, user_key

_OK, _CREATED, _NO_CONTENT, _NOT_FOUND = 200, 201, 204, 404


class GraphClient:
    """Calls Graph for one tenant; a `key` is a user's object id or UPN. One for all threads."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def create_user(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Create a user and return it."""
        return _identified(self._object("POST", "/v1.0/users", properties, status=_CREATED))

    def find_user(self, key: str, select: Sequence[str]) -> dict[str, Any] | None:
        """Return a user with some properties, or nothing if there is none, or none yet."""
        names = ",".join(dict.fromkeys(("id", *select)))
        try:
            found = self._object("GET", f"{_user(key)}?$select={names}")
        except ObjectMissing:
            return None
        return _identified(found)

    def change_user(self, key: str, changes: Mapping[str, Any]) -> None:
        """Change properties of a user."""
        self._call("PATCH", _user(key), changes, status=_NO_CONTENT)

    def delete_user(self, key: str) -> None:
        """Delete a user."""
        self._call("DELETE", _user(key), status=_NO_CONTENT)

    def is_deleted(self, identifier: str) -> bool:
        """Whether an object is in the bin."""
        try:
            self._object("GET", path("/v1.0/directory/deletedItems/{}", object_id(identifier, "id")))
        except ObjectMissing:
            return False
        return True

    def has_group(self, group: str) -> bool:
        """Whether there is such a group."""
        try:
            self._object("GET", path("/v1.0/groups/{}", object_id(group, "GroupId")) + "?$select=id")
        except ObjectMissing:
            return False
        return True

    def add_member(self, group: str, user: str) -> None:
        """Add a user, given by object id, to a group."""
        place = path("/v1.0/groups/{}/members/$ref", object_id(group, "GroupId"))
        member = path("/v1.0/directoryObjects/{}", object_id(user, "UserId"))
        self._call("POST", place, {"@odata.id": f"{self._api.origin}{member}"}, status=_NO_CONTENT)

    def remove_member(self, group: str, user: str) -> None:
        """Take a user, given by object id, out of a group. Without `/$ref` this would delete the user."""
        place = path("/v1.0/groups/{}/members/{}/$ref", object_id(group, "GroupId"), object_id(user, "UserId"))
        self._call("DELETE", place, status=_NO_CONTENT)

    def is_member(self, group: str, key: str) -> bool:
        """Whether a user is a member of a group, directly or through other groups."""
        asked = object_id(group, "GroupId")
        answer = self._object("POST", f"{_user(key)}/checkMemberGroups", {"groupIds": [asked]})
        found = answer.get("value")
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise UnreadableAnswer("Graph's answer does not tell the groups")
        return asked in {one.lower() for one in found}

    def invite(self, invitation: Mapping[str, Any]) -> dict[str, Any]:
        """Invite a user, and return the invitation."""
        return self._object("POST", "/v1.0/invitations", invitation, status=_CREATED)

    def convert_to_internal(self, key: str, details: Mapping[str, Any]) -> dict[str, Any]:
        """Make an external user an internal one. Graph has this call in beta only."""
        target = path("/beta/users/{}/convertExternalToInternalMemberUser", user_key(key, "UserId"))
        return self._object("POST", target, details)

    def _object(self, method: str, target: str, body: Any = None, *, status: int = _OK) -> dict[str, Any]:
        return self._call(method, target, body, status=status).object()

    def _call(self, method: str, target: str, body: Any = None, *, status: int) -> Answer:
        answer = self._api.send(method, target, body)
        if answer.response.status_code != status:
            raise _failure(method, target.partition("?")[0], answer)
        return answer


def is_passing(response: httpx.Response) -> bool:
    """Whether Graph gave up because somebody changed the same object at the same moment."""
    return response.status_code == httpx.codes.CONFLICT and b"Directory_ConcurrencyViolation" in response.content


def _user(key: str) -> str:
    return path("/v1.0/users/{}", user_key(key, "UserId"))


def _identified(user: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(user.get("id"), str) or not user["id"]:
        raise UnreadableAnswer("Graph's answer does not tell whose it is")
    return user


def _failure(method: str, target: str, answer: Answer) -> TenantFailed:
    status, attempts = answer.response.status_code, answer.attempts
    if answer.response.is_success:
        return UnreadableAnswer(f"Graph answered {method} {target} with status {status}", attempts=attempts)
    error = _error(answer)
    message = f"Graph: {method} {target}: {told(error.get('message'))} ({told(error.get('code') or status, 60)})"
    if status == _NOT_FOUND:
        return ObjectMissing(message, attempts=attempts)
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
