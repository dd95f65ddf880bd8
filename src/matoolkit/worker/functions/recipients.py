"""Recipients in Exchange: mail users, and the mailboxes that they become once mail has moved."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from matoolkit.worker.clients.exchange import Exchange
from matoolkit.worker.clients.failures import InvalidIdentifier, ObjectMissing, Rejected
from matoolkit.worker.clients.identifiers import exchange_identity
from matoolkit.worker.context import Context
from matoolkit.worker.failures import InvalidParameters
from matoolkit.worker.functions.comparison import value_of
from matoolkit.worker.functions.lag import until_seen

Kind = Literal["MailUser", "Mailbox"]
_KINDS: tuple[Kind, ...] = ("MailUser", "Mailbox")


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
            # What is changed is what was read, also if a name means somebody else by then.
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
    try:
        exchange.run(f"Set-{recipient.kind}", parameters)
    except (ObjectMissing, Rejected):
        again = find_recipient(exchange, checked)
        if again is None or not is_so(again):
            raise
    return True


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
