"""Exchange Online's InvokeCommand, as far as the functions call it: mail users, mailboxes, distribution groups."""

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from matoolkit.worker.tenant.calls import Answer, Refusal, Request
from matoolkit.worker.tenant.directory import Directory, Group, User, primary_of

_NOT_FOUND = "Microsoft.Exchange.Configuration.Tasks.ManagementObjectNotFoundException"
_TAKEN = "Microsoft.Exchange.Management.RecipientTasks.ProxyAddressExistsException"
_WRONG = "Microsoft.Exchange.Configuration.Tasks.ParameterBindingException"
BUSY = "Microsoft.Exchange.Data.Directory.SystemConfiguration.OverBudgetException"
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_DEFAULT_PAGE = 1000

Rows = list[dict[str, Any]]
Cmdlet = Callable[[dict[str, Any]], Rows]


class Exchange:
    """Runs cmdlets on a directory."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._cmdlets: dict[str, Cmdlet] = {
            "Get-MailUser": self._get_mail_user,
            "Get-Mailbox": self._get_mailbox,
            "Get-Recipient": self._get_recipient,
            "Get-DistributionGroupMember": self._get_members,
            "Set-MailUser": self._set_mail_user,
            "Set-Mailbox": self._set_mailbox,
        }

    def answer(self, request: Request) -> Answer:
        """Run the cmdlet that a call names, and return a page of what it finds."""
        match request.segments, request.body:
            case (
                ("adminapi", "beta", str(), "InvokeCommand"),
                {"CmdletInput": {"CmdletName": str(name), "Parameters": Mapping() as parameters}},
            ) if request.method == "POST":
                pass
            case _:
                raise failure(HTTPStatus.BAD_REQUEST, _WRONG, "The request is not a command.")
        if not request.header("X-AnchorMailbox") or request.header("X-CmdletName") != name:
            raise failure(HTTPStatus.BAD_REQUEST, _WRONG, "The request lacks X-AnchorMailbox or X-CmdletName.")
        cmdlet = self._cmdlets.get(name)
        if cmdlet is None:
            raise failure(HTTPStatus.BAD_REQUEST, _WRONG, f"The term '{name}' is not recognized as a cmdlet.")
        return _page(request, cmdlet(dict(parameters)))

    def error(self, refusal: Refusal) -> Answer:
        """Return the body in which Exchange tells an error: what happened is in the details."""
        error = {
            "code": refusal.code,
            "message": "Error executing cmdlet",
            "details": [{"code": "Context", "target": "", "message": refusal.message}],
            "innererror": {
                "message": "Error executing cmdlet",
                "type": "Microsoft.Exchange.Admin.OData.Core.ODataServiceException",
            },
        }
        return Answer(refusal.status, {"error": error})

    def _get_mail_user(self, parameters: dict[str, Any]) -> Rows:
        return [self._shown(self._only(parameters, "MailUser"))]

    def _get_mailbox(self, parameters: dict[str, Any]) -> Rows:
        return [self._shown(self._only(parameters, "UserMailbox"))]

    def _get_recipient(self, parameters: dict[str, Any]) -> Rows:
        return [self._shown(self._only(parameters, None))]

    def _get_members(self, parameters: dict[str, Any]) -> Rows:
        group = self._group(str(parameters.get("Identity", "")))
        return [self._shown(self._directory.users[member]) for member in group.members]

    def _set_mail_user(self, parameters: dict[str, Any]) -> Rows:
        return self._change(self._only(parameters, "MailUser"), parameters)

    def _set_mailbox(self, parameters: dict[str, Any]) -> Rows:
        if parameters.keys() & {"ExchangeGuid", "ArchiveGuid", "ExternalEmailAddress"}:
            raise failure(HTTPStatus.BAD_REQUEST, _WRONG, "A parameter cannot be found that matches the name.")
        return self._change(self._only(parameters, "UserMailbox"), parameters)

    def _change(self, user: User, parameters: dict[str, Any]) -> Rows:
        for name, value in parameters.items():
            if name == "EmailAddresses":
                self._change_addresses(user, value)
            elif name in {"ExchangeGuid", "ArchiveGuid"}:
                if not _GUID.fullmatch(str(value)):
                    raise failure(HTTPStatus.BAD_REQUEST, _WRONG, f"Cannot convert the value of {name} to a Guid.")
                user.mail[name] = str(value).lower()
            elif name == "ExternalEmailAddress":
                user.mail[name] = f"SMTP:{str(value).partition(':')[2] or value}"
            elif name != "Identity":
                raise failure(HTTPStatus.BAD_REQUEST, _WRONG, f"A parameter cannot be found that matches '{name}'.")
        return []

    def _change_addresses(self, user: User, change: Any) -> None:
        before = user.addresses[-1][1]
        match change:
            case list():
                after = tuple(change)
            case {"@odata.type": "#Exchange.GenericHashTable", **changes}:
                removed = {one.casefold() for one in _texts(changes.get("Remove"))}
                kept = tuple(one for one in before if one.casefold() not in removed)
                known = {one.casefold() for one in kept}
                after = (*kept, *(one for one in _texts(changes.get("Add")) if one.casefold() not in known))
            case _:
                raise failure(HTTPStatus.BAD_REQUEST, _WRONG, "EmailAddresses is neither a list nor a hash table.")
        for address in after:
            owner = self._directory.owner_of_address(address)
            if owner is not None and owner is not user:
                text = (
                    f'The proxy address "{address}" is already being used by the proxy addresses or LegacyExchangeDN.'
                )
                raise failure(HTTPStatus.BAD_REQUEST, _TAKEN, f"{text} Please choose another proxy address.")
        if sum(one.startswith("SMTP:") for one in after) != 1:
            raise failure(HTTPStatus.BAD_REQUEST, _WRONG, "There has to be exactly one primary address.")
        self._directory.change_addresses(user, after)

    def _only(self, parameters: dict[str, Any], kind: str | None) -> User:
        identity = str(parameters.get("Identity", ""))
        user = self._directory.user_for_exchange(identity)
        if user is None or kind not in (None, user.mail["RecipientTypeDetails"]):
            raise _missing(identity)
        return user

    def _group(self, identity: str) -> Group:
        folded = identity.casefold()
        for group in self._directory.groups.values():
            if folded in {group.id, group.mail.casefold(), group.display_name.casefold()}:
                return group
        raise _missing(identity)

    def _shown(self, user: User) -> dict[str, Any]:
        addresses = user.addresses[-1][1]
        return {
            "Identity": user.properties["displayName"],
            "DisplayName": user.properties["displayName"],
            "Alias": user.properties.get("mailNickname"),
            "UserPrincipalName": user.upn,
            "ExternalDirectoryObjectId": user.id,
            "EmailAddresses": list(addresses),
            "PrimarySmtpAddress": primary_of(addresses),
            "ExternalEmailAddress": None,
            "ExchangeGuid": "00000000-0000-0000-0000-000000000000",
            "ArchiveGuid": "00000000-0000-0000-0000-000000000000",
            **user.mail,
        }


def failure(status: int, exception: str, message: str) -> Refusal:
    """Return a refusal in the words of Exchange: a tag, the exception's name and its text."""
    return Refusal(status, HTTPStatus(status).phrase.replace(" ", ""), f"Ex000000|{exception}|{message}")


def _missing(identity: str) -> Refusal:
    text = f"The operation couldn't be performed because object '{identity}' couldn't be found on 'DC.example'."
    return failure(HTTPStatus.NOT_FOUND, _NOT_FOUND, text)


def _texts(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [str(value)] if value else []


def _page(request: Request, rows: Rows) -> Answer:
    _, _, wanted = request.header("Prefer").partition("odata.maxpagesize=")
    size = int(wanted) if wanted.isdigit() and int(wanted) else _DEFAULT_PAGE
    first = int(request.query.get("$skiptoken", "0"))
    body: dict[str, Any] = {"value": rows[first : first + size]}
    if len(rows) > first + size:
        path = request.target.partition("?")[0]
        body["@odata.nextLink"] = f"http://{request.header('Host')}{path}?$skiptoken={first + size}"
    return Answer(HTTPStatus.OK, body)
