"""A mailbox moves here from another tenant: begun, watched, completed, or called off.

A move is begun to be held: it copies, and goes on copying what changes, until somebody completes it.
"""

from datetime import timedelta
from typing import Any

from matoolkit.worker.clients.exchange import Exchange
from matoolkit.worker.clients.failures import ObjectMissing, Rejected
from matoolkit.worker.clients.identifiers import exchange_identity
from matoolkit.worker.context import Context
from matoolkit.worker.failures import InvalidParameters
from matoolkit.worker.functions.comparison import value_of
from matoolkit.worker.functions.lag import until_seen
from matoolkit.worker.functions.needs import MOVE_MAILBOXES, READ_RECIPIENTS
from matoolkit.worker.functions.recipients import carry_out, find_recipient
from matoolkit.worker.registry import function

# So far ahead that it means "not before Complete-MailboxMove".
_HELD = timedelta(days=365)
_DONE = frozenset({"Completed", "CompletedWithWarning"})
_COPIED = _DONE | {"Synced", "AutoSuspended", "CompletionInProgress"}
_UNTIL = {"synced": _COPIED, "completed": _DONE}
_GONE = "Completed"


@function("Start-MailboxMove", needs=MOVE_MAILBOXES)
def start_mailbox_move(
    context: Context,
    target_user: str,
    source_endpoint: str,
    target_delivery_domain: str,
    batch_name: str | None = None,
) -> dict[str, Any]:
    """Begin to move a mailbox to a mail user, and hold it before it completes; a failed move is started again."""
    identity = exchange_identity(target_user, "TargetUser")
    found = _status(context, identity)
    if found is not None and found["Status"] == "Failed":
        carry_out(context, *_removal(identity), lambda: _request(context, identity) is None)
        found = None
    if found is None:
        given = {
            "Identity": identity,
            "Remote": True,
            "SourceEndpoint": source_endpoint,
            "TargetDeliveryDomain": target_delivery_domain,
            "CompleteAfter": _moment(context, _HELD),
            "BatchName": batch_name,
        }
        parameters = {name: value for name, value in given.items() if value is not None}
        carry_out(context, "New-MoveRequest", parameters, lambda: _request(context, identity) is not None)
        found = until_seen(context.clock, lambda: _status(context, identity))
    if found is None:
        raise ObjectMissing(f"the move of {identity} was begun and is not shown")
    return {"TargetUser": identity, **found}


@function("Test-MailboxMove", needs=READ_RECIPIENTS)
def check_mailbox_move(context: Context, target_user: str, until: str = "Synced") -> dict[str, Any]:
    """Say whether a move is Synced, that is copied and held, or Completed; one that failed is a failure."""
    identity = exchange_identity(target_user, "TargetUser")
    wanted = _UNTIL.get(until.strip().casefold())
    if wanted is None:
        raise InvalidParameters("Test-MailboxMove", ["Until has to be Synced or Completed"])
    found = _status(context, identity) or {"Status": "None", "PercentComplete": 0}
    if found["Status"] == "Failed":
        raise Rejected(f"the move of {identity} failed: {found.get('Message') or 'no reason given'}")
    is_so = found["Status"] in wanted
    return {"complete": is_so, "data": {"TargetUser": identity, **found}}


@function("Complete-MailboxMove", needs=MOVE_MAILBOXES)
def complete_mailbox_move(context: Context, target_user: str) -> bool:
    """Let a move that is held complete; Test-MailboxMove says when it has."""
    identity = exchange_identity(target_user, "TargetUser")
    found = until_seen(context.clock, lambda: _status(context, identity))
    if found is None:
        raise ObjectMissing(f"there is no move of {identity} to complete")
    if found["Status"] not in _DONE:
        parameters = {"Identity": identity, "CompleteAfter": _moment(context, timedelta())}
        carry_out(context, "Set-MoveRequest", parameters, lambda: _is_completing(context, identity))
    return True


@function("Undo-MailboxMove", needs=MOVE_MAILBOXES)
def undo_mailbox_move(context: Context, user_principal_name: str) -> bool:
    """Call off a move that has not completed; without one there is nothing to do."""
    identity = exchange_identity(user_principal_name, "UserPrincipalName")
    found = _status(context, identity)
    if found is None:
        return True
    if found["Status"] in _DONE:
        raise Rejected(f"the mailbox of {identity} has moved: only a move in the other direction brings it back")
    carry_out(context, *_removal(identity), lambda: _request(context, identity) is None)
    return True


def _removal(identity: str) -> tuple[str, dict[str, Any]]:
    return "Remove-MoveRequest", {"Identity": identity, "Confirm": False}


def _request(context: Context, identity: str) -> dict[str, Any] | None:
    exchange: Exchange = context.exchange
    try:
        return next(iter(exchange.run("Get-MoveRequestStatistics", {"Identity": identity})), None)
    except ObjectMissing:
        return None


def _status(context: Context, identity: str) -> dict[str, Any] | None:
    """Return how far a move is; of one that completed long ago only the mailbox is left."""
    found = _request(context, identity)
    if found is not None:
        names = ("Status", "PercentComplete", "Message")
        return {name: value_of(found, name) for name in names}
    recipient = find_recipient(context.exchange, identity)
    if recipient is None or recipient.kind == "MailUser":
        return None
    return {"Status": _GONE, "PercentComplete": 100, "Message": None}


def _is_completing(context: Context, identity: str) -> bool:
    found = _status(context, identity)
    return found is not None and found["Status"] in _DONE | {"CompletionInProgress"}


def _moment(context: Context, later: timedelta) -> str:
    return f"{context.clock.now() + later:%Y-%m-%d %H:%M:%SZ}"
