"""What the parts of Graph share: finding things by their ids, and saying no in its words."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from matoolkit.worker.tenant.calls import Answer, Refusal, Request
from matoolkit.worker.tenant.directory import Directory, Group, User, primary_of

NO_CONTENT = Answer(HTTPStatus.NO_CONTENT)

Handler = Callable[[Request, list[str]], Answer]
Routes = tuple[tuple[str, str, Handler], ...]


class Lookup:
    """Finds what Graph sees of a directory."""

    def __init__(self, directory: Directory) -> None:
        self.directory = directory

    def user(self, key: str) -> User:
        """Find a user by id or UPN."""
        user = self.directory.user_for_graph(key)
        if user is None:
            raise missing(key)
        return user

    def group(self, key: str) -> Group:
        """Find a group by id."""
        group = self.directory.group_for_graph(key)
        if group is None:
            raise missing(key)
        return group

    def object_id(self, key: str) -> str:
        """Find whatever can be in a group: a user, an application, another group."""
        folded = key.casefold()
        if folded in self.directory.applications or folded in self.directory.groups:
            return folded
        return self.user(key).id

    def shown(self, user: User) -> dict[str, Any]:
        """Return all that Graph has of a user."""
        addresses = self.directory.addresses_for_graph(user)
        mail = primary_of(addresses) or user.properties.get("mail")
        return {"id": user.id, **user.properties, "proxyAddresses": list(addresses), "mail": mail}


def missing(key: str) -> Refusal:
    """Return what Graph says of whatever it does not find, be it the object itself or one that it refers to."""
    message = f"Resource '{key}' does not exist or one of its queried reference-property objects are not present."
    return Refusal(HTTPStatus.NOT_FOUND, "Request_ResourceNotFound", message)


def bad(message: str, code: str = "Request_BadRequest") -> Refusal:
    """Return a refusal of what was asked for."""
    return Refusal(HTTPStatus.BAD_REQUEST, code, message)


def body_of(request: Request) -> dict[str, Any]:
    """Return a request's body, which has to be an object."""
    if not isinstance(request.body, Mapping):
        raise bad("Unable to read JSON request payload.", "BadRequest")
    return dict(request.body)


def matched(pattern: str, segments: tuple[str, ...]) -> list[str] | None:
    """Return what stands at the places of a pattern that are open."""
    parts = pattern.split("/")
    if len(parts) != len(segments):
        return None
    if any(part not in ("*", segment) for part, segment in zip(parts, segments, strict=True)):
        return None
    return [segment for part, segment in zip(parts, segments, strict=True) if part == "*"]
