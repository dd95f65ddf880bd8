"""What a mail user is before its mailbox comes: where its mail goes, and which mailbox it will be."""

import re
from typing import Any

from matoolkit.worker.clients.failures import Rejected
from matoolkit.worker.context import Context
from matoolkit.worker.failures import InvalidParameters
from matoolkit.worker.functions.needs import CHANGE_RECIPIENTS
from matoolkit.worker.functions.recipients import (
    Recipient,
    bare_address,
    mail_address,
    make_so,
    with_primary,
)
from matoolkit.worker.registry import function

_EXTERNAL = "Set-ExchangeExternalAddress"
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@function(_EXTERNAL, needs=CHANGE_RECIPIENTS)
def set_exchange_external_address(
    context: Context, identity: str, external_email_address: str, primary_email: str | None = None
) -> bool:
    """Send a mail user's mail to an address elsewhere; its primary address stays, or becomes PrimaryEmail."""
    address = mail_address(_EXTERNAL, "ExternalEmailAddress", external_email_address)
    wanted = None if primary_email is None else mail_address(_EXTERNAL, "PrimaryEmail", primary_email)

    def is_so(recipient: Recipient) -> bool:
        external = bare_address(str(recipient.value("ExternalEmailAddress") or ""))
        primary = str(recipient.value("PrimarySmtpAddress") or "")
        is_right = primary.casefold() == wanted.casefold() if wanted else primary.casefold() != address.casefold()
        return external.casefold() == address.casefold() and is_right

    def changes(recipient: Recipient) -> dict[str, Any]:
        # Alone, the external address would become the primary one, and the mailbox could not move.
        others = with_primary(recipient, wanted or _kept_primary(recipient, address), without=address)
        return _of_mail_user(recipient, {"ExternalEmailAddress": f"SMTP:{address}", "EmailAddresses": others})

    return make_so(context, identity, is_so, changes)


def _kept_primary(recipient: Recipient, external: str) -> str:
    primary = str(recipient.value("PrimarySmtpAddress") or "")
    if not primary or primary.casefold() == external.casefold():
        raise Rejected(f"the primary address of {recipient.identity} is its external one: give PrimaryEmail")
    return primary


@function("Set-ExchangeMailUserGuids", needs=CHANGE_RECIPIENTS)
def set_exchange_mail_user_guids(
    context: Context, identity: str, exchange_guid: str, archive_guid: str | None = None
) -> bool:
    """Give a mail user the ids of the mailbox that will move to it."""
    given = {"ExchangeGuid": exchange_guid, "ArchiveGuid": archive_guid}
    wanted = {name: _guid(name, value) for name, value in given.items() if value is not None}

    def is_so(recipient: Recipient) -> bool:
        return all(str(recipient.value(name)).casefold() == value for name, value in wanted.items())

    return make_so(context, identity, is_so, lambda one: _of_mail_user(one, wanted))


def _of_mail_user(recipient: Recipient, changes: dict[str, Any]) -> dict[str, Any]:
    if recipient.kind != "MailUser":
        why = ": a licence came before the ExchangeGuid and made it" if "ExchangeGuid" in changes else ""
        raise Rejected(f"{recipient.identity} is a mailbox, and only a mail user has {' and '.join(changes)}{why}")
    return changes


def _guid(name: str, value: str) -> str:
    text = value.strip()
    # PowerShell and registries write them in braces.
    bare = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    if not _GUID.fullmatch(bare):
        raise InvalidParameters("Set-ExchangeMailUserGuids", [f"{name} has to be a GUID"])
    return bare.lower()
