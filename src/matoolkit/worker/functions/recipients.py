"""Recipients in Exchange: mail users, and the mailboxes that they become once mail has moved."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from matoolkit.worker.clients.exchange import Exchange
from matoolkit.worker.clients.failures import (
    InvalidIdentifier,
    ObjectMissing,
    Rejected,
    Unanswered,
    UnreadableAnswer,
)
from matoolkit.worker.clients.identifiers import exchange_identity
from matoolkit.worker.context import Context
from matoolkit.worker.failures import InvalidParameters
from matoolkit.worker.functions.comparison import value_of
from matoolkit.worker.functions.lag import until_seen, until_true

Kind = Literal["MailUser", "Mailbox"]
_KINDS: tuple[Kind, ...] = ("MailUser", "Mailbox")
_MOST_TRIES = 3


@dataclass(frozen=True, slots=True)
class Recipient:
    """A recipient as Exchange shows it."""

    kind: Kind
    identity: str
    fields: Mapping[str, Any]

    def value(self, name: str) -> Any:
        """Return an attribute."""
        return value_of(self.fields, name)

    def texts(self, name: str) -> list[str]:
        """Return an attribute that has several values."""
        value = self.value(name)
        return [str(one) for one in value] if isinstance(value, list) else []


def find_recipient(exchange: Exchange, identity: str) -> Recipient | None:
    """Return the one recipient of an identity; nothing if there is none, or none yet."""
    for kind in _KINDS:
        try:
            found = exchange.run(f"Get-{kind}", {"Identity": identity})
        except ObjectMissing:
            continue
        if len(found) > 1:
            raise InvalidIdentifier(f"Identity stands for {len(found)} recipients, and has to stand for one")
        for fields in found:
            # Change the object that was read, even if its name means another one in the meantime.
            return Recipient(kind, str(value_of(fields, "Guid") or identity), fields)
    return None


def make_so(
    context: Context,
    identity: str,
    is_so: Callable[[Recipient], bool],
    changes: Callable[[Recipient], Mapping[str, Any]],
) -> bool:
    """Change a recipient unless it is as it should be; a refusal counts only if it is not so afterwards."""
    exchange: Exchange = context.exchange
    checked = exchange_identity(identity, "Identity")
    recipient = until_seen(context.clock, lambda: find_recipient(exchange, checked))
    if recipient is None:
        raise ObjectMissing(f"there is no mail user or mailbox {checked}")
    if is_so(recipient):
        return True
    parameters = {"Identity": recipient.identity, **changes(recipient)}

    def is_done() -> bool:
        again = find_recipient(exchange, checked)
        return again is not None and is_so(again)

    carry_out(context, f"Set-{recipient.kind}", parameters, is_done)
    return True


def carry_out(
    context: Context,
    cmdlet: str,
    parameters: Mapping[str, Any],
    is_done: Callable[[], bool],
    *,
    password: str | None = None,
) -> bool:
    """Run a cmdlet that changes something; a refusal, or no answer, counts only if it is not done afterwards.

    What may still be at work is not sent again: a cmdlet can take minutes. The step's retry looks before it sends.
    Says whether this call did it, as far as can be known; after a refusal somebody else did.
    """
    exchange: Exchange = context.exchange
    for is_last in (number == _MOST_TRIES for number in range(1, _MOST_TRIES + 1)):
        try:
            exchange.run(cmdlet, parameters, password=password)
        except Unanswered as lost:
            if until_true(context.clock, is_done):
                return True
            if is_last or not lost.is_over:
                raise
        except (ObjectMissing, Rejected, UnreadableAnswer):
            if not is_done():
                raise
            return False
        else:
            return True
    raise AssertionError("the last try returns or raises")


def with_primary(recipient: Recipient, primary: str, *, without: str = "") -> list[str]:
    """Return all addresses of a recipient with another primary one; the former stays as a secondary."""
    left_out = {f"smtp:{bare_address(one)}".casefold() for one in (primary, without) if one}
    kept = (one for one in recipient.texts("EmailAddresses") if one.casefold() not in left_out)
    others = [f"smtp:{bare_address(one)}" if one.startswith("SMTP:") else one for one in kept]
    return [f"SMTP:{bare_address(primary)}", *others]


def bare_address(address: str) -> str:
    """Return a mail address without its prefix."""
    return address[5:] if address[:5].casefold() == "smtp:" else address


def mail_address(function: str, parameter: str, value: str) -> str:
    """Check a mail address, and return it without its prefix."""
    address = bare_address(value.strip())
    name, _, domain = address.rpartition("@")
    if not name or not domain or any(letter.isspace() or not letter.isprintable() for letter in address):
        raise InvalidParameters(function, [f"{parameter} has to be a mail address"])
    return address
