"""Mail addresses of a recipient. Exchange writes them; Entra shows them as proxyAddresses after a while.

The primary address is the one whose prefix is in capitals; only `Set-ExchangePrimaryEmail` changes which it is.
"""

from typing import Any

from matoolkit.worker.clients.failures import Rejected
from matoolkit.worker.context import Context
from matoolkit.worker.functions.needs import CHANGE_RECIPIENTS
from matoolkit.worker.functions.recipients import Recipient, mail_address, make_so, with_primary
from matoolkit.worker.registry import function

_LIST = "EmailAddresses"
_HASH_TABLE = {"@odata.type": "#Exchange.GenericHashTable"}


@function("Add-ExchangeSecondaryEmail", needs=CHANGE_RECIPIENTS)
def add_exchange_secondary_email(context: Context, identity: str, email_address: str) -> bool:
    """Add an address to a recipient; the primary one stays."""
    address = f"smtp:{mail_address('Add-ExchangeSecondaryEmail', 'EmailAddress', email_address)}"
    return make_so(
        context, identity, lambda one: not _missing(one, [address]), lambda _: {_LIST: {**_HASH_TABLE, "Add": address}}
    )


@function("Set-ExchangeEmailAddresses", needs=CHANGE_RECIPIENTS)
def set_exchange_email_addresses(context: Context, identity: str, email_addresses: list[str]) -> bool:
    """See to it that a recipient has all these addresses; others it has, and its primary one, stay."""
    wanted = [_proxy_address(one) for one in email_addresses]
    return make_so(
        context,
        identity,
        lambda one: not _missing(one, wanted),
        lambda one: {_LIST: {**_HASH_TABLE, "Add": _missing(one, wanted)}},
    )


@function("Remove-ExchangeEmailAddress", needs=CHANGE_RECIPIENTS)
def remove_exchange_email_address(context: Context, identity: str, email_address: str) -> bool:
    """Take an address from a recipient; the primary one has to be replaced first."""
    name = "Remove-ExchangeEmailAddress"
    gone = _proxy_address(email_address, name, "EmailAddress")

    def changes(recipient: Recipient) -> dict[str, Any]:
        held = next(one for one in recipient.texts(_LIST) if one.casefold() == gone.casefold())
        if held.startswith("SMTP:"):
            raise Rejected(
                f"{held} is the primary address of {recipient.identity}: Set-ExchangePrimaryEmail changes it"
            )
        return {_LIST: {**_HASH_TABLE, "Remove": held}}

    return make_so(context, identity, lambda one: bool(_missing(one, [gone])), changes)


@function("Set-ExchangePrimaryEmail", needs=CHANGE_RECIPIENTS)
def set_exchange_primary_email(context: Context, identity: str, new_primary_email: str) -> bool:
    """Make an address the primary one of a recipient; the former one stays as a secondary."""
    primary = f"SMTP:{mail_address('Set-ExchangePrimaryEmail', 'NewPrimaryEmail', new_primary_email)}"

    return make_so(
        context, identity, lambda one: _is_primary(one, primary), lambda one: {_LIST: with_primary(one, primary)}
    )


def _is_primary(recipient: Recipient, primary: str) -> bool:
    return any(one.startswith("SMTP:") and one.casefold() == primary.casefold() for one in recipient.texts(_LIST))


def _missing(recipient: Recipient, wanted: list[str]) -> list[str]:
    present = {one.casefold() for one in recipient.texts(_LIST)}
    return [one for one in dict.fromkeys(wanted) if one.casefold() not in present]


def _proxy_address(value: Any, function_name: str = "Set-ExchangeEmailAddresses", parameter: str = _LIST) -> str:
    """Read an address of any kind; one without prefix is a mail address."""
    text = str(value).strip() if isinstance(value, str) else ""
    prefix, colon, rest = text.partition(":")
    if colon and prefix.casefold() != "smtp" and prefix.isalnum() and rest.strip():
        return text
    return f"smtp:{mail_address(function_name, parameter, text)}"
