"""Making a mail user: an account that is known to mail before its mailbox moves here.

An account that Graph makes is not a mail user, and the cloud cannot turn it into one; so Exchange makes the account
too.
"""

from typing import Any

from matoolkit.worker.clients.exchange import Exchange
from matoolkit.worker.clients.failures import ObjectMissing, Rejected
from matoolkit.worker.clients.graph import GraphClient
from matoolkit.worker.context import Context
from matoolkit.worker.functions.accounts import user_name
from matoolkit.worker.functions.lag import once_there, until_seen
from matoolkit.worker.functions.needs import CHANGE_RECIPIENTS, CHANGE_USERS, READ_USERS
from matoolkit.worker.functions.passwords import chosen_password
from matoolkit.worker.functions.recipients import (
    Recipient,
    bare_address,
    carry_out,
    find_recipient,
    mail_address,
    make_so,
    with_primary,
)
from matoolkit.worker.registry import function
from matoolkit.worker.signature import Secret

_FUNCTION = "New-ExchangeMailUser"


@function(_FUNCTION, needs=(READ_USERS, CHANGE_USERS, *CHANGE_RECIPIENTS))
def new_exchange_mail_user(
    context: Context,
    display_name: str,
    user_principal_name: str,
    mail_nickname: str,
    external_email_address: str,
    primary_email: str | None = None,
    first_name: str | None = None,
    last_name: str | None = None,
    password: Secret | None = None,
    account_enabled: bool = True,
) -> dict[str, Any]:
    """Create a mail user, whose mail goes elsewhere until its mailbox moves here; one that is there is left."""
    upn = user_name(user_principal_name, "UserPrincipalName")
    external = mail_address(_FUNCTION, "ExternalEmailAddress", external_email_address)
    primary = mail_address(_FUNCTION, "PrimaryEmail", primary_email or upn)
    exchange: Exchange = context.exchange
    found = find_recipient(exchange, upn) or _made_meanwhile(context, upn)
    is_created = found is None
    if found is None:
        parameters = {
            # A name has to be the only one of its kind in the organisation, and people's names are not.
            "Name": upn,
            "DisplayName": display_name,
            "Alias": mail_nickname,
            "MicrosoftOnlineServicesID": upn,
            "ExternalEmailAddress": external,
            "FirstName": first_name,
            "LastName": last_name,
        }
        given = {name: value for name, value in parameters.items() if value is not None}
        secret = chosen_password(context, password)
        is_created = carry_out(
            context, "New-MailUser", given, lambda: find_recipient(exchange, upn) is not None, password=secret
        )
        # The external address is now the primary one, and no mailbox moves to such a mail user.
        make_so(context, upn, lambda one: _has(one, primary, external), lambda one: _addresses(one, primary, external))
        if is_created and not account_enabled:
            # Exchange makes no account that is closed.
            graph: GraphClient = context.graph
            once_there(context.clock, lambda: graph.change_user(upn, {"accountEnabled": False}))
    seen = until_seen(context.clock, lambda: find_recipient(exchange, upn))
    if seen is None:
        raise ObjectMissing(f"there is no mail user {upn}")
    return _described(seen, is_created=is_created)


def _made_meanwhile(context: Context, upn: str) -> Recipient | None:
    """Return the mail user of an account that is there already, if it is one; nothing if there is no such account."""
    graph: GraphClient = context.graph
    if graph.find_user(upn, ()) is None:
        return None
    # Another delivery of the job may have made it, and Exchange not show it yet.
    found = until_seen(context.clock, lambda: find_recipient(context.exchange, upn))
    if found is None:
        why = "Exchange cannot make a mail user of it: rename or remove it, or give it a licence and a new mailbox"
        raise Rejected(f"there is an account {upn} that is not a mail user; {why}")
    return found


def _has(recipient: Recipient, primary: str, external: str) -> bool:
    present = {one.casefold() for one in recipient.texts("EmailAddresses")}
    is_primary = str(recipient.value("PrimarySmtpAddress")).casefold() == primary.casefold()
    return is_primary and f"smtp:{external}".casefold() not in present


def _addresses(recipient: Recipient, primary: str, external: str) -> dict[str, Any]:
    return {"EmailAddresses": with_primary(recipient, primary, without=external)}


def _described(recipient: Recipient, *, is_created: bool) -> dict[str, Any]:
    return {
        "Id": recipient.value("ExternalDirectoryObjectId"),
        "DisplayName": recipient.value("DisplayName"),
        "UserPrincipalName": recipient.value("UserPrincipalName"),
        "MailNickname": recipient.value("Alias"),
        "PrimaryEmail": recipient.value("PrimarySmtpAddress"),
        "ExternalEmailAddress": bare_address(str(recipient.value("ExternalEmailAddress") or "")) or None,
        "Created": is_created,
    }
