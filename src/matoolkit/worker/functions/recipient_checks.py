"""Whether a recipient is as expected, for steps that wait until it is."""

from typing import Any

from matoolkit.worker.clients.exchange import Exchange
from matoolkit.worker.clients.failures import ObjectMissing
from matoolkit.worker.clients.identifiers import exchange_identity
from matoolkit.worker.context import Context
from matoolkit.worker.functions.comparison import check_expectation, is_as_expected, value_of
from matoolkit.worker.functions.needs import READ_RECIPIENTS
from matoolkit.worker.functions.recipients import bare_address, find_recipient
from matoolkit.worker.registry import function

_SAME_IN_BOTH = ("Guid", "ExternalDirectoryObjectId")


@function("Test-ExchangeAttributeMatch", needs=READ_RECIPIENTS)
def check_exchange_attribute(
    context: Context, identity: str, attribute_name: str, expected_value: Any, is_multi_value: bool = False
) -> dict[str, Any]:
    """Say whether an attribute of a recipient is as expected; one who is not there yet is not."""
    checked = exchange_identity(identity, "Identity")
    check_expectation("Test-ExchangeAttributeMatch", expected_value, is_multi_value=is_multi_value)
    found = find_recipient(context.exchange, checked)
    current = None if found is None else found.value(attribute_name.strip())
    is_match = found is not None and is_as_expected(
        _without_prefix(current), _without_prefix(expected_value), is_multi_value=is_multi_value
    )
    data = {
        "Match": is_match,
        "AttributeName": attribute_name,
        "CurrentValue": current,
        "ExpectedValue": expected_value,
        "RecipientFound": found is not None,
    }
    return {"complete": is_match, "data": data}


@function("Test-ExchangeGroupMembership", needs=READ_RECIPIENTS)
def check_exchange_membership(context: Context, group_identity: str, member_identity: str) -> dict[str, Any]:
    """Say whether a recipient is in a distribution group or mail-enabled security group."""
    group = exchange_identity(group_identity, "GroupIdentity")
    member = exchange_identity(member_identity, "MemberIdentity")
    is_member, is_group, is_recipient = find_membership(context.exchange, group, member)
    data = {
        "IsMember": is_member,
        "GroupFound": is_group,
        "MemberFound": is_recipient,
        "GroupIdentity": group,
        "MemberIdentity": member,
    }
    return {"complete": is_member, "data": data}


def find_membership(exchange: Exchange, group: str, member: str) -> tuple[bool, bool, bool]:
    """Say whether somebody is in a group, and whether there are such a group and such a recipient."""
    recipients = _found(exchange, "Get-Recipient", {"Identity": member})
    members = _found(exchange, "Get-DistributionGroupMember", {"Identity": group, "ResultSize": "Unlimited"})
    is_member = any(_is_same(one, other) for one in recipients or () for other in members or ())
    return is_member, members is not None, bool(recipients)


def _found(exchange: Exchange, cmdlet: str, parameters: dict[str, Any]) -> list[dict[str, Any]] | None:
    try:
        return exchange.run(cmdlet, parameters)
    except ObjectMissing:
        return None


def _is_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    pairs = ((value_of(one, name), value_of(other, name)) for name in _SAME_IN_BOTH)
    return any(mine and str(mine).casefold() == str(theirs).casefold() for mine, theirs in pairs)


def _without_prefix(value: Any) -> Any:
    """Return a value that may be one address without its prefix, which Exchange shows and people leave out."""
    return bare_address(value) if isinstance(value, str) else value
