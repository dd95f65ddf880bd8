"""Mail users and mailboxes: reading them, making them, changing them."""

import re
from http import HTTPStatus
from itertools import islice
from typing import Any

from matoolkit.worker.tenant.directory import (
    ACCOUNT,
    MAIL_USER,
    MAILBOX,
    NO_GUID,
    Directory,
    User,
    domain_of,
    is_smtp,
    primary_of,
)
from matoolkit.worker.tenant.refusals import TAKEN, Cmdlet, Rows, check_names, failure, missing, wrong

_EXISTS = "Microsoft.Exchange.Data.Directory.ADObjectAlreadyExistsException"
_DOMAIN = "Microsoft.Exchange.Management.RecipientTasks.NotAcceptedDomainException"
_SCOPE = "Microsoft.Exchange.Configuration.Tasks.TaskWriteScopeException"
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

_NEW_MAIL_USER = frozenset(
    {
        *("Name", "MicrosoftOnlineServicesID", "Password", "ExternalEmailAddress", "Alias", "DisplayName"),
        *("FirstName", "LastName", "PrimarySmtpAddress"),
    }
)
_OF_BOTH = frozenset({"Identity", "EmailAddresses"})
_OF_MAIL_USER = _OF_BOTH | {"ExternalEmailAddress", "ExchangeGuid", "ArchiveGuid", "EnableLitigationHoldForMigration"}
_FORWARDING = ("ForwardingAddress", "ForwardingSmtpAddress", "DeliverToMailboxAndForward")
_ALWAYS_SHOWN = (
    *("Identity", "Guid", "Name", "DisplayName", "Alias", "ExternalDirectoryObjectId", "EmailAddresses"),
    *("PrimarySmtpAddress", "RecipientTypeDetails"),
)
_OF_MOVES = ("UserPrincipalName", "ExchangeGuid", "ArchiveGuid", "LegacyExchangeDN", "LitigationHoldEnabled")
_SHOWN = {
    "Recipient": ("ExternalEmailAddress", "ExchangeGuid", "ArchiveGuid"),
    MAIL_USER: ("ExternalEmailAddress", *_OF_MOVES),
    MAILBOX: (*_FORWARDING, *_OF_MOVES),
    ACCOUNT: ("UserPrincipalName", "LegacyExchangeDN", "PreviousRecipientTypeDetails"),
}
# Where the directory is synchronised, only the other side may write these.
_MASTERED = frozenset({"EmailAddresses", "ExternalEmailAddress"})


class Recipients:
    """Cmdlets for mail users and mailboxes."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.cmdlets: dict[str, Cmdlet] = {
            "Get-MailUser": lambda given: [shown(self._read(given, MAIL_USER), MAIL_USER)],
            "Get-Mailbox": lambda given: [shown(self._read(given, MAILBOX), MAILBOX)],
            "Get-Recipient": self._get_recipient,
            "Get-User": lambda given: [shown(self._any(given, is_read=True), ACCOUNT)],
            "New-MailUser": self._new_mail_user,
            "Set-MailUser": self._set_mail_user,
            "Set-Mailbox": self._set_mailbox,
            "Set-User": self._set_user,
        }

    def _get_recipient(self, given: dict[str, Any]) -> Rows:
        if "Identity" in given:
            return [shown(self._read(given))]
        check_names(given, ("ResultSize",))
        recipients = (user for user in self._directory.users.values() if user.kind != ACCOUNT)
        return [shown(user) for user in islice(recipients, int(given.get("ResultSize", 1000)))]

    def _new_mail_user(self, given: dict[str, Any]) -> Rows:
        check_names(given, _NEW_MAIL_USER)
        name, upn = str(given.get("Name") or ""), str(given.get("MicrosoftOnlineServicesID") or "")
        if not name or not upn or not given.get("Password"):
            raise wrong("Parameter set cannot be resolved using the specified named parameters.")
        self._check_domain(upn)
        alias = str(given.get("Alias") or name)
        for user in self._directory.users.values():
            # Mail-enabling an account that Graph made is what the cloud cannot do.
            if user.upn.casefold() == upn.casefold():
                raise wrong(f'The user principal name "{upn}" is already being used.', _EXISTS)
            if name.casefold() == str(user.mail.get("Name", "")).casefold():
                raise wrong(f'The name "{name}" is already being used. Please try another name.', _EXISTS)
            if user.kind != ACCOUNT and alias.casefold() == str(user.properties.get("mailNickname")).casefold():
                raise wrong(f'The alias "{alias}" is already being used.', _EXISTS)
        external = _bare(str(given.get("ExternalEmailAddress") or ""))
        primary = f"SMTP:{external or upn}"
        self._check_free([primary], None)
        properties = {
            "displayName": given.get("DisplayName") or name,
            "mailNickname": alias,
            "userPrincipalName": upn,
            "givenName": given.get("FirstName"),
            "surname": given.get("LastName"),
            "passwordProfile": {},
            "proxyAddresses": [primary],
            "exchange": {
                "Name": name,
                "RecipientTypeDetails": MAIL_USER,
                "ExternalEmailAddress": f"SMTP:{external}" if external else None,
            },
        }
        return [shown(self._directory.add_user(properties), MAIL_USER)]

    def _set_mail_user(self, given: dict[str, Any]) -> None:
        check_names(given, _OF_MAIL_USER)
        user = self._any(given, MAIL_USER)
        _check_master(user, "Set-MailUser", given)
        for name in ("ExchangeGuid", "ArchiveGuid"):
            if name in given:
                user.mail[name] = _guid(name, given[name])
        if given.get("EnableLitigationHoldForMigration"):
            user.mail["LitigationHoldEnabled"] = True
        if "ExternalEmailAddress" in given:
            self._change_external(user, _bare(str(given["ExternalEmailAddress"])))
        if "EmailAddresses" in given:
            self._change_addresses(user, given["EmailAddresses"])

    def _set_mailbox(self, given: dict[str, Any]) -> None:
        check_names(given, {*_OF_BOTH, *_FORWARDING})
        user = self._any(given, MAILBOX)
        _check_master(user, "Set-Mailbox", given)
        user.mail |= {name: given[name] for name in _FORWARDING if name in given}
        if "EmailAddresses" in given:
            self._change_addresses(user, given["EmailAddresses"])

    def _set_user(self, given: dict[str, Any]) -> None:
        check_names(given, ("Identity", "PermanentlyClearPreviousMailboxInfo", "Confirm"))
        if given.get("PermanentlyClearPreviousMailboxInfo") and given.get("Confirm") is not False:
            raise wrong("A command that prompts the user failed because the host does not support interaction.")
        user = self._any(given)
        user.mail["PreviousRecipientTypeDetails"] = "None"
        if user.kind == MAIL_USER:
            user.mail["ExchangeGuid"] = NO_GUID

    def _change_external(self, user: User, address: str) -> None:
        """The external address becomes the primary one, and the external address before it is not kept."""
        before = _bare(str(user.mail.get("ExternalEmailAddress") or ""))
        gone = {before.casefold(), address.casefold()}
        kept = [f"smtp:{_bare(one)}" if is_smtp(one) else one for one in user.current]
        kept = [one for one in kept if not is_smtp(one) or _bare(one).casefold() not in gone]
        self._check_free([f"SMTP:{address}"], user)
        user.mail["ExternalEmailAddress"] = f"SMTP:{address}"
        self._directory.change_addresses(user, (f"SMTP:{address}", *kept))

    def _change_addresses(self, user: User, change: Any) -> None:
        before = user.current
        match change:
            case list():
                after = tuple(change)
            case {"@odata.type": "#Exchange.GenericHashTable", **changes}:
                removed = {one.casefold() for one in _texts(changes.get("Remove"))}
                kept = tuple(one for one in before if one.casefold() not in removed)
                known = {one.casefold() for one in kept}
                after = (*kept, *(one for one in _texts(changes.get("Add")) if one.casefold() not in known))
            case _:
                raise wrong("EmailAddresses is neither a list nor a hash table.")
        known = {one.casefold() for one in before}
        for address in after:
            if is_smtp(address) and address.casefold() not in known:
                self._check_domain(address)
        self._check_free(after, user)
        if sum(one.startswith("SMTP:") for one in after) != 1:
            raise wrong("There has to be exactly one primary address.")
        self._directory.change_addresses(user, after)

    def _check_domain(self, address: str) -> None:
        if not self._directory.is_verified(address):
            text = f'The domain "{domain_of(address)}" isn\'t an accepted domain for your organization.'
            raise wrong(text, _DOMAIN)

    def _check_free(self, addresses: list[str] | tuple[str, ...], user: User | None) -> None:
        for address in addresses:
            owner = self._directory.owner_of_address(address)
            if owner is not None and owner is not user:
                text = (
                    f'The proxy address "{address}" is already being used by the proxy addresses or LegacyExchangeDN.'
                )
                raise wrong(f"{text} Please choose another proxy address.", TAKEN)

    def _read(self, given: dict[str, Any], kind: str | None = None) -> User:
        check_names(given, ("Identity",))
        user = self._any(given, kind, is_read=True)
        if user.kind == ACCOUNT:
            raise missing(str(given.get("Identity", "")), is_read=True)
        return user

    def _any(self, given: dict[str, Any], kind: str | None = None, *, is_read: bool = False) -> User:
        identity = str(given.get("Identity", ""))
        user = self._directory.user_for_exchange(identity)
        if user is None or kind not in (None, user.kind):
            raise missing(identity, is_read=is_read and kind != MAILBOX)
        return user


def shown(user: User, kind: str = "Recipient") -> dict[str, Any]:
    """Return a recipient as the cmdlet for its kind shows it."""
    everything = {
        "Identity": user.properties["displayName"],
        "Name": user.properties["displayName"],
        "DisplayName": user.properties["displayName"],
        "Alias": user.properties.get("mailNickname"),
        "UserPrincipalName": user.upn,
        "ExternalDirectoryObjectId": user.id,
        "EmailAddresses": list(user.current),
        "PrimarySmtpAddress": primary_of(user.current),
        "ExternalEmailAddress": None,
        "ExchangeGuid": NO_GUID,
        "ArchiveGuid": NO_GUID,
        "ForwardingAddress": None,
        "ForwardingSmtpAddress": None,
        "LitigationHoldEnabled": False,
        "DeliverToMailboxAndForward": False,
        "PreviousRecipientTypeDetails": "None",
        "LegacyExchangeDN": None,
        **user.mail,
    }
    return {name: everything[name] for name in (*_ALWAYS_SHOWN, *_SHOWN[kind])}


def _check_master(user: User, cmdlet: str, given: dict[str, Any]) -> None:
    refused = sorted(given.keys() & _MASTERED)
    if user.properties.get("onPremisesSyncEnabled") and refused:
        text = (
            f"The operation on recipient failed because it's out of the current user's write scope. The action"
            f" '{cmdlet}', '{','.join(refused)}', can't be performed on the object '{user.upn}' because the object is"
            " being synchronized from your on-premises organization."
        )
        raise failure(HTTPStatus.FORBIDDEN, _SCOPE, text)


def _guid(name: str, value: Any) -> str:
    if not _GUID.fullmatch(str(value)):
        raise wrong(f"Cannot process argument transformation on parameter '{name}'.")
    return str(value).lower()


def _bare(address: str) -> str:
    return address[5:] if is_smtp(address) else address


def _texts(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [str(value)] if value else []
