"""The functions of every worker (rule W2): run twice, they succeed both times with the same end state.

What they return and when they do nothing: docs/reference/functions.md.
"""

from matoolkit.worker.functions import (
    access,
    account_checks,
    addresses,
    exchange_groups,
    group_members,
    guests,
    licences,
    mail_users,
    mailbox_moves,
    mailboxes,
    mails,
    new_mail_users,
    recipient_checks,
    user_properties,
    users,
)
from matoolkit.worker.registry import Registry

MODULES = (
    *(users, user_properties, group_members, guests, account_checks, licences, access),
    *(new_mail_users, addresses, mail_users, recipient_checks, mailboxes, exchange_groups, mailbox_moves, mails),
)


def built_in() -> Registry:
    """Return a registry with all of them."""
    registry = Registry()
    for module in MODULES:
        registry.register_module(module)
    return registry
