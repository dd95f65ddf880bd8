"""Microsoft Graph, as far as the functions call it: which call, and accounts."""

from http import HTTPStatus
from itertools import islice
from typing import Any
from uuid import uuid4

from matoolkit.worker.tenant.calls import Answer, Refusal, Request
from matoolkit.worker.tenant.directory import ACCOUNT, Directory, User
from matoolkit.worker.tenant.group_members import Memberships
from matoolkit.worker.tenant.guests import Guests
from matoolkit.worker.tenant.lookup import NO_CONTENT, Lookup, Routes, bad, body_of, matched, missing
from matoolkit.worker.tenant.properties import (
    LICENCE_PROPERTIES,
    check_changed,
    check_created,
    check_password,
    check_upn_is_free,
    selected,
)
from matoolkit.worker.tenant.signing_in import SigningIn

_FORBIDDEN = Refusal(
    HTTPStatus.FORBIDDEN, "Authorization_RequestDenied", "Insufficient privileges to complete the operation."
)


class Graph(Lookup):
    """Answers calls on a directory."""

    def __init__(self, directory: Directory) -> None:
        super().__init__(directory)
        self._signing_in = SigningIn(directory)
        self._routes: Routes = (
            ("GET", "v1.0/users", self._list_users),
            ("POST", "v1.0/users", self._create_user),
            ("GET", "v1.0/users/*", self._get_user),
            ("PATCH", "v1.0/users/*", self._change_user),
            ("DELETE", "v1.0/users/*", self._delete_user),
            ("GET", "v1.0/directory/deletedItems/*", self._get_deleted),
            ("DELETE", "v1.0/groups/*/members/*", self._delete_member),
            *Memberships(directory).routes,
            *Guests(directory).routes,
            *self._signing_in.routes,
        )

    def answer(self, request: Request) -> Answer:
        """Answer a call, or refuse it."""
        for method, pattern, handler in self._routes:
            found = matched(pattern, request.segments)
            if method == request.method and found is not None:
                return handler(request, found)
        raise bad(f"Resource not found for the segment '{request.segments[-1]}'.", "BadRequest")

    def forbidden(self) -> Answer:
        """Return the error for an application without the permission."""
        return self.error(_FORBIDDEN)

    def error(self, refusal: Refusal) -> Answer:
        """Return the body in which Graph tells an error."""
        moment = self.directory.clock.now().strftime("%Y-%m-%dT%H:%M:%S")
        identifier = str(uuid4())
        inner = {"date": moment, "request-id": identifier, "client-request-id": identifier}
        error: dict[str, Any] = {"code": refusal.code, "message": refusal.message, "innerError": inner}
        if refusal.details:
            error["details"] = list(refusal.details)
        return Answer(refusal.status, {"error": error})

    def _list_users(self, request: Request, _: list[str]) -> Answer:
        most = int(request.query.get("$top", "100"))
        seen = (user for user in self.directory.users.values() if self.directory.user_for_graph(user.id))
        listed = [selected(self.shown(user), request.query.get("$select")) for user in islice(seen, most)]
        return Answer(HTTPStatus.OK, {"value": listed})

    def _create_user(self, request: Request, _: list[str]) -> Answer:
        body = body_of(request)
        check_created(body)
        check_upn_is_free(self.directory, body["userPrincipalName"], None)
        user = self.directory.add_user(body)
        return Answer(HTTPStatus.CREATED, selected(self.shown(user), None))

    def _get_user(self, request: Request, found: list[str]) -> Answer:
        user, select = self.user(found[0]), request.query.get("$select")
        shown = self.shown(user)
        if select and LICENCE_PROPERTIES & set(select.split(",")):
            shown |= self._signing_in.licence_properties(user)
        return Answer(HTTPStatus.OK, selected(shown, select))

    def _change_user(self, request: Request, found: list[str]) -> Answer:
        user = self.user(found[0])
        changes = body_of(request)
        check_changed(changes)
        self._check_master(user, changes)
        if "userPrincipalName" in changes:
            check_upn_is_free(self.directory, changes["userPrincipalName"], user)
            self.directory.rename(user, changes["userPrincipalName"])
        if "passwordProfile" in changes:
            check_password(changes.pop("passwordProfile"))
            user.passwords_set += 1
        if "mail" in changes:
            self.directory.change_addresses(user, (f"SMTP:{changes.pop('mail')}",))
        user.properties.update(changes)
        return NO_CONTENT

    def _check_master(self, user: User, changes: dict[str, Any]) -> None:
        """Refuse to change what another directory or service is the master of."""
        if user.properties.get("onPremisesSyncEnabled") and changes.keys() - {"usageLocation"}:
            raise bad(
                "Unable to update the specified properties for on-premises mastered Directory Sync objects"
                " or objects currently undergoing migration."
            )
        if "mail" in changes and user.kind != ACCOUNT:
            raise bad(
                "Unable to update the specified properties for objects that have originated within an external service."
            )

    def _delete_user(self, _: Request, found: list[str]) -> Answer:
        self.directory.delete_user(self.user(found[0]))
        return NO_CONTENT

    def _get_deleted(self, _: Request, found: list[str]) -> Answer:
        user = self.directory.deleted.get(found[0].casefold())
        if user is None:
            raise missing(found[0])
        return Answer(HTTPStatus.OK, {"@odata.type": "#microsoft.graph.user", **selected(self.shown(user), None)})

    def _delete_member(self, _: Request, found: list[str]) -> Answer:
        """Without `/$ref` the call means the member itself: the user is deleted."""
        self.group(found[0])
        return self._delete_user(_, found[1:])
