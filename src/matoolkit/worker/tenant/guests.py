"""People who sign in elsewhere: invited to, and made members."""

from http import HTTPStatus
from typing import Any
from uuid import uuid4

from matoolkit.worker.tenant.calls import Answer, Request
from matoolkit.worker.tenant.lookup import Lookup, Routes, bad, body_of
from matoolkit.worker.tenant.properties import check_password, check_upn_is_free


class Guests(Lookup):
    """Invitations and conversions."""

    @property
    def routes(self) -> Routes:
        """The calls that are answered here."""
        return (
            ("POST", "v1.0/invitations", self._invite),
            ("POST", "beta/users/*/convertExternalToInternalMemberUser", self._convert),
        )

    def _invite(self, request: Request, _: list[str]) -> Answer:
        body = body_of(request)
        address, redirect = str(body.get("invitedUserEmailAddress") or ""), body.get("inviteRedirectUrl")
        if not address or not redirect:
            raise bad("The inviteRedirectUrl and invitedUserEmailAddress properties are required.", "BadRequest")
        user = self.user(str((body.get("invitedUser") or {}).get("id", "")))
        if str(self.shown(user)["mail"]).casefold() != address.casefold():
            raise bad("The invited user's mail is not the email address of the invitation.", "BadRequest")
        if user.properties.get("externalUserState") is None:
            user.properties["externalUserState"] = "PendingAcceptance"
        user.properties["otherMails"] = sorted({*user.properties["otherMails"], address})
        user.properties["userType"] = body.get("invitedUserType") or user.properties["userType"]
        user.invitation_mails += bool(body.get("sendInvitationMessage"))
        is_pending = user.properties["externalUserState"] == "PendingAcceptance"
        invitation = {
            "id": str(uuid4()),
            "inviteRedeemUrl": f"https://login.example/redeem?ticket={uuid4()}",
            "invitedUserEmailAddress": address,
            "invitedUserType": user.properties["userType"],
            "inviteRedirectUrl": redirect,
            "sendInvitationMessage": bool(body.get("sendInvitationMessage")),
            "status": "PendingAcceptance" if is_pending else "Completed",
            "invitedUser": {"id": user.id},
        }
        self.directory.invitations.append(invitation)
        return Answer(HTTPStatus.CREATED, invitation)

    def _convert(self, request: Request, found: list[str]) -> Answer:
        user = self.user(found[0])
        body: dict[str, Any] = {} if request.body is None else body_of(request)
        if not user.is_external:
            raise bad("The user authentication is already internal and isn't eligible for conversion.")
        if user.properties.get("onPremisesSyncEnabled"):
            if body.get("userPrincipalName") or body.get("passwordProfile"):
                text = "For users synchronized from on-premises, userPrincipalName and passwordProfile must be empty"
                raise bad(text, "badRequest")
        else:
            check_password(body.get("passwordProfile"))
            check_upn_is_free(self.directory, str(body.get("userPrincipalName", "")), user)
            self.directory.rename(user, body["userPrincipalName"])
            user.passwords_set += 1
        # The state of the invitation stays what it was.
        user.is_external = False
        user.properties["userType"] = "Member"
        if body.get("mail"):
            self.directory.change_addresses(user, (f"SMTP:{body['mail']}",))
        details = {
            "displayName": user.properties["displayName"],
            "userPrincipalName": user.upn,
            "convertedToInternalUserDateTime": self.directory.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            "mail": body.get("mail") or self.shown(user)["mail"],
        }
        return Answer(HTTPStatus.OK, details)
