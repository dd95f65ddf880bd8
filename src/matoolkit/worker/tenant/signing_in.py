"""What an account may use and how its owner gets in: licences, passes, sessions, the manager, mail."""

from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from matoolkit.worker.tenant.calls import Answer, Request
from matoolkit.worker.tenant.directory import ACCOUNT, INITIAL_DOMAIN, User
from matoolkit.worker.tenant.licences import SKUS, apply_licences, consumed, licences_of, plans_of
from matoolkit.worker.tenant.lookup import NO_CONTENT, Lookup, Routes, bad, body_of, missing

_ACCEPTED = Answer(HTTPStatus.ACCEPTED)
_SHORTEST, _LONGEST = 10, 43_200
_USABLE = "EnabledByPolicy"


class SigningIn(Lookup):
    """Calls about one account."""

    @property
    def routes(self) -> Routes:
        """The calls that are answered here."""
        passes = "v1.0/users/*/authentication/temporaryAccessPassMethods"
        return (
            ("GET", "v1.0/subscribedSkus", self._skus),
            ("POST", "v1.0/users/*/assignLicense", self._assign),
            ("POST", "v1.0/users/*/revokeSignInSessions", self._revoke),
            ("GET", "v1.0/users/*/manager", self._manager),
            ("PUT", "v1.0/users/*/manager/$ref", self._set_manager),
            ("DELETE", "v1.0/users/*/manager/$ref", self._remove_manager),
            ("GET", passes, self._passes),
            ("POST", passes, self._new_pass),
            ("DELETE", f"{passes}/*", self._delete_pass),
            ("POST", "v1.0/users/*/sendMail", self._send),
            ("GET", "v1.0/users/*/mailFolders/sentitems/messages", self._sent),
        )

    def licence_properties(self, user: User) -> dict[str, Any]:
        """Return what Graph shows of a user's licences."""
        held = licences_of(self.directory, user)
        return {
            "assignedLicenses": [{"skuId": sku, "disabledPlans": off} for sku, off in held.items()],
            "assignedPlans": [
                {"servicePlanId": plan, "capabilityStatus": "Enabled"}
                for plan in sorted(plans_of(self.directory, user))
            ],
        }

    def _skus(self, _: Request, __: list[str]) -> Answer:
        shown = [
            {
                "skuId": sku,
                "skuPartNumber": name,
                "prepaidUnits": {"enabled": total, "suspended": 0, "warning": 0},
                "consumedUnits": consumed(self.directory, sku),
            }
            for sku, (total, name, _) in SKUS.items()
        ]
        return Answer(HTTPStatus.OK, {"value": shown})

    def _assign(self, request: Request, found: list[str]) -> Answer:
        user, body = self.user(found[0]), body_of(request)
        if not isinstance(body.get("addLicenses"), list) or not isinstance(body.get("removeLicenses"), list):
            raise bad("One or more parameters of the operation 'assignLicense' are missing from the request payload.")
        added = {str(one["skuId"]).casefold(): list(one.get("disabledPlans", [])) for one in body["addLicenses"]}
        removed = [str(one).casefold() for one in body["removeLicenses"]]
        for sku in (*added, *removed):
            if sku not in SKUS:
                raise bad(f"License {sku} does not correspond to a valid company License.")
        if added and not user.properties.get("usageLocation"):
            raise bad("License assignment cannot be done for user with invalid usage location.")
        for sku in added:
            if sku not in licences_of(self.directory, user) and consumed(self.directory, sku) >= SKUS[sku][0]:
                raise bad(f"Subscription with SKU {sku} does not have any available licenses.")
        if any(sku not in user.licences for sku in removed):
            raise bad("User does not have a corresponding license.")
        user.licences = {sku: off for sku, off in {**user.licences, **added}.items() if sku not in removed}
        apply_licences(self.directory, [user])
        return Answer(HTTPStatus.OK, {"id": user.id, "userPrincipalName": user.upn})

    def _revoke(self, _: Request, found: list[str]) -> Answer:
        self.user(found[0]).sessions_revoked += 1
        return Answer(HTTPStatus.OK, {"value": True})

    def _manager(self, _: Request, found: list[str]) -> Answer:
        manager = self.user(found[0]).manager
        if manager is None or manager not in self.directory.users:
            raise missing("manager")
        return Answer(HTTPStatus.OK, {"@odata.type": "#microsoft.graph.user", "id": manager})

    def _set_manager(self, request: Request, found: list[str]) -> Answer:
        user = self.user(found[0])
        user.manager = self.user(str(body_of(request).get("@odata.id", "")).rpartition("/")[2]).id
        return NO_CONTENT

    def _remove_manager(self, _: Request, found: list[str]) -> Answer:
        user = self.user(found[0])
        if user.manager is None:
            raise missing("manager")
        user.manager = None
        return NO_CONTENT

    def _passes(self, _: Request, found: list[str]) -> Answer:
        now = self.directory.clock.now()
        return Answer(HTTPStatus.OK, {"value": [_as_of(now, one) for one in self.user(found[0]).passes]})

    def _new_pass(self, request: Request, found: list[str]) -> Answer:
        user, body = self.user(found[0]), body_of(request)
        minutes = body.get("lifetimeInMinutes", 60)
        if not isinstance(minutes, int) or not _SHORTEST <= minutes <= _LONGEST:
            raise bad("The lifetime of a Temporary Access Pass is out of range.")
        now = self.directory.clock.now()
        made = {
            "id": str(uuid4()),
            "createdDateTime": f"{now:%Y-%m-%dT%H:%M:%SZ}",
            "startDateTime": str(body.get("startDateTime") or f"{now:%Y-%m-%dT%H:%M:%SZ}"),
            "lifetimeInMinutes": minutes,
            "isUsableOnce": bool(body.get("isUsableOnce")),
            "methodUsabilityReason": _USABLE,
        }
        # One at a time; the value is told once and never again.
        user.passes = [{**made, "temporaryAccessPass": None}]
        return Answer(HTTPStatus.CREATED, {**_as_of(now, made), "temporaryAccessPass": f"+{uuid4().hex[:11]}"})

    def _delete_pass(self, _: Request, found: list[str]) -> Answer:
        user = self.user(found[0])
        kept = [one for one in user.passes if one["id"] != found[1]]
        if len(kept) == len(user.passes):
            raise missing(found[1])
        user.passes = kept
        return NO_CONTENT

    def _send(self, request: Request, found: list[str]) -> Answer:
        user, message = self._mailbox(found[0]), body_of(request).get("message")
        if not isinstance(message, dict) or not message.get("toRecipients"):
            raise bad("At least one recipient isn't valid.", "ErrorInvalidRecipients")
        kept = {
            "internetMessageId": message.get("internetMessageId") or f"<{uuid4()}@{INITIAL_DOMAIN}>",
            "subject": message.get("subject"),
            "toRecipients": message["toRecipients"],
            "sentDateTime": f"{self.directory.clock.now():%Y-%m-%dT%H:%M:%SZ}",
        }
        user.sent.append(kept)
        return _ACCEPTED

    def _sent(self, request: Request, found: list[str]) -> Answer:
        wanted = request.query.get("$filter", "").partition(" eq ")[2].strip("'")
        found_ones = [one for one in self._mailbox(found[0]).sent if one["internetMessageId"] == wanted]
        return Answer(HTTPStatus.OK, {"value": [{"id": str(number)} for number, _ in enumerate(found_ones)]})

    def _mailbox(self, key: str) -> User:
        user = self.user(key)
        if user.kind == ACCOUNT:
            raise bad(
                "The mailbox is either inactive, soft-deleted, or is hosted on-premise.", "MailboxNotEnabledForRESTAPI"
            )
        return user


def _as_of(now: datetime, one: dict[str, Any]) -> dict[str, Any]:
    """Return a Temporary Access Pass as it is at a time: whether it can be used, and why not."""
    starts = datetime.fromisoformat(one["startDateTime"])
    reason = one["methodUsabilityReason"]
    if now < starts:
        reason = "NotYetValid"
    elif now >= starts + timedelta(minutes=one["lifetimeInMinutes"]):
        reason = "Expired"
    return {**one, "isUsable": reason == _USABLE, "methodUsabilityReason": reason}
