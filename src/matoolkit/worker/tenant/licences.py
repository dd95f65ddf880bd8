"""Licences, and what they do to mail: a mailbox appears where there is none, and addresses of other domains go."""

from collections.abc import Sequence
from uuid import uuid4

from matoolkit.worker.tenant.directory import MAIL_USER, MAILBOX, NO_GUID, Directory, User, is_smtp

E3 = "05e9a617-0261-4cee-bb44-138d3ef5d965"
ENTRA_P1 = "078d2b04-f1bd-4111-bbd4-b4b1b354cef4"
EXCHANGE_PLAN = "efb87545-963c-4e0d-99df-69c6916d9eb0"
ENTRA_PLAN = "41781fb2-bc02-4b7c-bd55-b576c07bb09d"

# What the tenant has bought: how many, under which name, with which plans.
SKUS: dict[str, tuple[int, str, tuple[str, ...]]] = {
    E3: (10_000, "SPE_E3", (EXCHANGE_PLAN, ENTRA_PLAN)),
    ENTRA_P1: (5, "AAD_PREMIUM", (ENTRA_PLAN,)),
}


def licences_of(directory: Directory, user: User) -> dict[str, list[str]]:
    """Return the licences that a user has, by itself or through its groups, each with the plans that are off."""
    through_groups = (sku for group in directory.groups.values() if user.id in group.members for sku in group.licences)
    return {**{sku: [] for sku in through_groups}, **user.licences}


def plans_of(directory: Directory, user: User) -> set[str]:
    """Return the plans that a user may use."""
    held = licences_of(directory, user).items()
    return {plan for sku, off in held for plan in SKUS[sku][2] if plan not in off}


def consumed(directory: Directory, sku: str) -> int:
    """How many of a licence are in use."""
    return sum(sku in licences_of(directory, user) for user in directory.users.values())


def apply_licences(directory: Directory, users: Sequence[User]) -> None:
    """Do to mail what the licences that users have now do to it."""
    for user in users:
        if EXCHANGE_PLAN not in plans_of(directory, user):
            continue
        kept = tuple(one for one in user.current if not is_smtp(one) or directory.is_verified(one))
        if not any(one.startswith("SMTP:") for one in kept):
            kept = (f"SMTP:{user.upn}", *(one for one in kept if one.casefold() != f"smtp:{user.upn}".casefold()))
        if kept != user.current:
            directory.change_addresses(user, kept)
        # A mail user with an ExchangeGuid will get a mailbox from elsewhere; all others get a new one.
        if user.kind == MAILBOX or (user.kind == MAIL_USER and user.mail.get("ExchangeGuid", NO_GUID) != NO_GUID):
            continue
        user.mail |= {
            "RecipientTypeDetails": MAILBOX,
            "ExchangeGuid": str(uuid4()),
            "ExternalEmailAddress": None,
            "LegacyExchangeDN": f"/o=ExchangeLabs/ou=Recipients/cn={user.id.replace('-', '')}",
        }
