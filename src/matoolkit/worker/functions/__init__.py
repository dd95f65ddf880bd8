"""The functions that every worker brings along (rule W2): run twice they come to the same end, and succeed both times.

What they return and when they do nothing: docs/reference/functions.md.
"""

from matoolkit.worker.functions import (
    account_checks,
    addresses,
    guests,
    mail_users,
    membership,
    new_mail_users,
    recipient_checks,
    user_properties,
    users,
)
from matoolkit.worker.registry import Registry

MODULES = (
    users,
    user_properties,
    membership,
    guests,
    account_checks,
    addresses,
    mail_users,
    recipient_checks,
    new_mail_users,
)


def built_in() -> Registry:
    """Return a registry with all of them."""
    registry = Registry()
    for module in MODULES:
        registry.register_module(module)
    return registry
