"""What a mail user is before its mailbox comes: where its mail goes, and which mailbox it will be."""

import re
from typing import Any

from matoolkit.worker.clients.failures import Rejected
from matoolkit.worker.context import Context
from matoolkit.worker.failures import InvalidParameters
from matoolkit.worker.functions.needs import CHANGE_RECIPIENTS
from matoolkit.worker.functions.recipients import Recipient, bare_address, mail_address, make_so
from matoolkit.worker.registry import function

_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@function("Set-ExchangeExternalAddress", needs=CHANGE_RECIPIENTS)
def set_exchange_external_address(context: Context, identity: str, external_email_address: str) -> bool:
    """Send a mail user's mail to an address elsewhere."""
    address = mail_address("Set-ExchangeExternalAddress", "ExternalEmailAddress", external_email_address)

    def is_so(recipient: Recipient) -> bool:
        return bare_address(str(recipient.value("ExternalEmailAddress") or "")).casefold() == address.casefold()

    return make_so(
        context, identity, is_so, lambda one: _of_mail_user(one, {"ExternalEmailAddress": f"SMTP:{address}"})
    )


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
        raise Rejected(f"{recipient.identity} is a mailbox: only a mail user has {' and '.join(changes)}")
    return changes


def _guid(name: str, value: str) -> str:
    text = value.strip()
    # PowerShell and registries write them in braces.
    bare = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    if not _GUID.fullmatch(bare):
        raise InvalidParameters("Set-ExchangeMailUserGuids", [f"{name} has to be a GUID"])
    return bare.lower()
