"""Mailboxes and what they leave behind: reading one that will move, and clearing the way for it."""

from typing import Any

from matoolkit.worker.clients.exchange import Exchange
from matoolkit.worker.clients.failures import ObjectMissing
from matoolkit.worker.clients.identifiers import exchange_identity
from matoolkit.worker.context import Context
from matoolkit.worker.functions.comparison import value_of
from matoolkit.worker.functions.lag import until_seen
from matoolkit.worker.functions.needs import CHANGE_RECIPIENTS, READ_RECIPIENTS
from matoolkit.worker.functions.recipients import Recipient, carry_out, find_recipient, make_so
from matoolkit.worker.registry import function

NO_GUID = "00000000-0000-0000-0000-000000000000"


@function("Get-MailboxInfo", needs=READ_RECIPIENTS)
def get_mailbox_info(context: Context, user_id: str) -> dict[str, Any]:
    """Read what a mail user in another tenant needs to know of a mailbox before it can move there."""
    identity = exchange_identity(user_id, "UserId")
    found = until_seen(context.clock, lambda: find_recipient(context.exchange, identity))
    if found is None or found.kind != "Mailbox":
        raise ObjectMissing(f"there is no mailbox {identity}")
    addresses = found.texts("EmailAddresses")
    legacy = str(found.value("LegacyExchangeDN") or "")
    kept = [one for one in addresses if one[:5].casefold() == "x500:"]
    archive = str(found.value("ArchiveGuid") or NO_GUID)
    return {
        "MailboxGuid": found.value("ExchangeGuid"),
        "ArchiveGuid": None if archive == NO_GUID else archive,
        "PrimarySmtpAddress": found.value("PrimarySmtpAddress"),
        "LegacyExchangeDN": legacy,
        "X500Addresses": list(dict.fromkeys([f"X500:{legacy}", *kept])) if legacy else kept,
        "EmailAddresses": addresses,
        "IsOnHold": bool(found.value("LitigationHoldEnabled")),
    }


@function("Remove-MailForwarding", needs=CHANGE_RECIPIENTS)
def remove_mail_forwarding(context: Context, user_principal_name: str) -> bool:
    """Let a mailbox forward its mail to nobody; a mail user has nothing to remove."""

    def is_so(recipient: Recipient) -> bool:
        forwarded = (recipient.value(name) for name in ("ForwardingAddress", "ForwardingSmtpAddress"))
        return recipient.kind == "MailUser" or not any(forwarded)

    nothing = {"ForwardingAddress": None, "ForwardingSmtpAddress": None, "DeliverToMailboxAndForward": False}
    return make_so(context, user_principal_name, is_so, lambda _: nothing)


@function("Enable-ExchangeMigrationHold", needs=CHANGE_RECIPIENTS)
def enable_exchange_migration_hold(context: Context, identity: str) -> bool:
    """Put a mail user on hold before its mailbox comes, so that a large folder of deleted items fits."""
    return make_so(
        context,
        identity,
        lambda one: bool(one.value("LitigationHoldEnabled")),
        lambda _: {"EnableLitigationHoldForMigration": True},
    )


@function("Clear-ExchangePreviousMailbox", needs=CHANGE_RECIPIENTS)
def clear_exchange_previous_mailbox(context: Context, identity: str) -> bool:
    """Forget for ever the mailbox that an account had before, so that another one can move to it."""
    exchange: Exchange = context.exchange
    checked = exchange_identity(identity, "Identity")
    found = until_seen(context.clock, lambda: _account(exchange, checked))
    if found is None:
        raise ObjectMissing(f"there is no account {checked}")

    def is_clear() -> bool:
        again = _account(exchange, checked)
        return again is not None and _had_no_mailbox(again)

    if not _had_no_mailbox(found):
        parameters = {"Identity": checked, "PermanentlyClearPreviousMailboxInfo": True, "Confirm": False}
        carry_out(context, "Set-User", parameters, is_clear)
    return True


def _account(exchange: Exchange, identity: str) -> dict[str, Any] | None:
    try:
        return next(iter(exchange.run("Get-User", {"Identity": identity})), None)
    except ObjectMissing:
        return None


def _had_no_mailbox(account: dict[str, Any]) -> bool:
    return str(value_of(account, "PreviousRecipientTypeDetails") or "None") == "None"
