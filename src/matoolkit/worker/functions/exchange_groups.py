"""Groups that Exchange keeps: distribution lists and mail-enabled security groups, which Graph cannot change."""

from typing import Any

from matoolkit.worker.clients.exchange import Exchange
from matoolkit.worker.clients.failures import ObjectMissing
from matoolkit.worker.clients.graph import GraphClient
from matoolkit.worker.clients.identifiers import exchange_identity, is_object_id
from matoolkit.worker.context import Context
from matoolkit.worker.functions.comparison import value_of
from matoolkit.worker.functions.lag import until_seen
from matoolkit.worker.functions.needs import CHANGE_RECIPIENTS, READ_GROUPS, READ_RECIPIENTS
from matoolkit.worker.functions.recipient_checks import find_membership
from matoolkit.worker.functions.recipients import carry_out, mail_address
from matoolkit.worker.registry import function


@function("Add-ExchangeGroupMember", needs=CHANGE_RECIPIENTS)
def add_exchange_group_member(context: Context, group_identity: str, member_identity: str) -> bool:
    """Add a recipient to a distribution list or mail-enabled security group; one who is in it stays so."""
    return _settle(context, "Add-DistributionGroupMember", group_identity, member_identity, should_be_member=True)


@function("Remove-ExchangeGroupMember", needs=CHANGE_RECIPIENTS)
def remove_exchange_group_member(context: Context, group_identity: str, member_identity: str) -> bool:
    """Take a recipient out of a distribution list or mail-enabled security group."""
    return _settle(context, "Remove-DistributionGroupMember", group_identity, member_identity, should_be_member=False)


def _settle(context: Context, cmdlet: str, group: str, member: str, *, should_be_member: bool) -> bool:
    groups, members = exchange_identity(group, "GroupIdentity"), exchange_identity(member, "MemberIdentity")
    exchange: Exchange = context.exchange
    found = until_seen(context.clock, lambda: _known_member(exchange, groups, members))
    if found is None:
        raise ObjectMissing(f"there is no recipient {members}")
    if found is should_be_member:
        return True
    # The application manages recipients, but is not a manager of this group.
    parameters: dict[str, Any] = {"Identity": groups, "Member": members, "BypassSecurityGroupManagerCheck": True}
    if not should_be_member:
        parameters["Confirm"] = False
    carry_out(context, cmdlet, parameters, lambda: _known_member(exchange, groups, members) is should_be_member)
    return True


def _known_member(exchange: Exchange, group: str, member: str) -> bool | None:
    """Whether somebody is in a group; nothing if there is no such recipient yet. A missing group is told at once."""
    is_member, is_group, is_recipient = find_membership(exchange, group, member)
    if not is_group:
        raise ObjectMissing(f"there is no distribution list or mail-enabled security group {group}")
    return is_member if is_recipient else None


@function("New-DistributionGroup", needs=CHANGE_RECIPIENTS)
def new_distribution_group(
    context: Context,
    group_name: str,
    description: str | None = None,
    primary_email: str | None = None,
    is_security_group: bool = False,
) -> dict[str, Any]:
    """Create a distribution list, or a mail-enabled security group; one of that name is left as it is."""
    name = exchange_identity(group_name, "GroupName")
    address = None if primary_email is None else mail_address("New-DistributionGroup", "PrimaryEmail", primary_email)
    exchange: Exchange = context.exchange
    is_created = False
    if _group(exchange, name) is None:
        given = {
            "Name": name,
            "Type": "Security" if is_security_group else "Distribution",
            "Notes": description,
            "PrimarySmtpAddress": address,
        }
        parameters = {key: value for key, value in given.items() if value is not None}
        is_created = carry_out(context, "New-DistributionGroup", parameters, lambda: _group(exchange, name) is not None)
    found = until_seen(context.clock, lambda: _group(exchange, name))
    if found is None:
        raise ObjectMissing(f"there is no group {name}")
    return {
        "Id": value_of(found, "ExternalDirectoryObjectId"),
        "Name": value_of(found, "Name"),
        "PrimaryEmail": value_of(found, "PrimarySmtpAddress"),
        "Created": is_created,
    }


@function("New-MigrationBatchGroup", needs=CHANGE_RECIPIENTS)
def new_migration_batch_group(context: Context, batch_id: str, start_time: str | None = None) -> dict[str, Any]:
    """Create the mail-enabled security group of a batch, by which the source tenant says whose mailbox may leave."""
    when = f", starting {start_time}" if start_time else ""
    return new_distribution_group(
        context, f"migration-batch-{batch_id}", f"Migration batch {batch_id}{when}", is_security_group=True
    )


@function("Test-DistributionGroupSync", needs=(*READ_RECIPIENTS, READ_GROUPS))
def check_distribution_group_sync(context: Context, group_name: str) -> dict[str, Any]:
    """Say whether Entra knows a group that Exchange made."""
    name = exchange_identity(group_name, "GroupName")
    graph: GraphClient = context.graph
    found = _group(context.exchange, name)
    identifier = str(value_of(found or {}, "ExternalDirectoryObjectId") or "")
    is_known = is_object_id(identifier) and graph.find_group(identifier) is not None
    data = {"GroupName": name, "Id": identifier or None, "InExchange": found is not None, "InEntra": is_known}
    return {"complete": is_known, "data": data}


def _group(exchange: Exchange, name: str) -> dict[str, Any] | None:
    try:
        return next(iter(exchange.run("Get-DistributionGroup", {"Identity": name})), None)
    except ObjectMissing:
        return None
