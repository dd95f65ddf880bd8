"""Who and what is in the tenant: users with their two faces, one for Graph and one for Exchange, and groups.

A new object is not seen at once, and what Exchange writes is seen by Graph only after a while: lags, in seconds. To
Exchange an account that Graph made is no recipient: only a mail user or a mailbox is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import uuid4

from matoolkit.clock import Clock

# What was put there by hand has been there for long enough to be seen.
_LONG_AGO = timedelta(days=30)
INITIAL_DOMAIN = "contoso.example"
NO_GUID = "00000000-0000-0000-0000-000000000000"
ACCOUNT, MAIL_USER, MAILBOX = "User", "MailUser", "UserMailbox"

GroupKind = Literal["security", "distribution", "mail-enabled security", "Microsoft 365"]


@dataclass(slots=True)
class Lags:
    """Seconds until a new object is seen by Graph and by Exchange, until Graph sees what Exchange wrote, and of a move.

    A real tenant certainly has such lags, but their length is unknown.
    """

    graph: float = 2
    exchange: float = 20
    sync: float = 10
    move: float = 60


@dataclass(slots=True)
class User:
    """A person's object: `properties` as Graph names them, `mail` as Exchange does."""

    id: str
    properties: dict[str, Any]
    mail: dict[str, Any]
    created_at: datetime
    addresses: list[tuple[datetime, tuple[str, ...]]]
    passwords_set: int = 0
    invitation_mails: int = 0
    is_external: bool = False
    licences: dict[str, list[str]] = field(default_factory=dict)
    manager: str | None = None
    passes: list[dict[str, Any]] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)
    sessions_revoked: int = 0

    @property
    def upn(self) -> str:
        """The name with which the user signs in."""
        return str(self.properties["userPrincipalName"])

    @property
    def kind(self) -> str:
        """What the user is to Exchange."""
        return str(self.mail["RecipientTypeDetails"])

    @property
    def current(self) -> tuple[str, ...]:
        """The addresses that it has now."""
        return self.addresses[-1][1]


@dataclass(slots=True)
class Group:
    """A group, and since when each member is in it: users, applications and other groups."""

    id: str
    display_name: str
    created_at: datetime
    mail: str = ""
    members: dict[str, datetime] = field(default_factory=dict)
    kind: GroupKind = "security"
    licences: list[str] = field(default_factory=list)

    @property
    def is_in_exchange(self) -> bool:
        """Whether Exchange is where its members are changed."""
        return self.kind in {"distribution", "mail-enabled security"}


@dataclass(slots=True)
class MailboxMove:
    """A mailbox on its way here."""

    user: str
    started_at: datetime
    complete_after: datetime
    batch: str | None = None
    failure: str | None = None
    is_completed: bool = False


class Directory:
    """Users, groups and invitations. The caller holds the tenant's lock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.lags = Lags()
        self.users: dict[str, User] = {}
        self.deleted: dict[str, User] = {}
        self.groups: dict[str, Group] = {}
        self.applications: dict[str, str] = {}
        self.domains: set[str] = {INITIAL_DOMAIN}
        self.moves: dict[str, MailboxMove] = {}
        self.remote_mailboxes: dict[str, dict[str, Any]] = {}
        self.invitations: list[dict[str, Any]] = []
        self._names: dict[str, User] = {}
        self._owners: dict[str, User] = {}

    def add_user(self, properties: dict[str, Any], *, is_seeded: bool = False) -> User:
        """Put a user there; a seeded one is seen at once, and its domain is one of the tenant's."""
        created_at = self.clock.now() - (_LONG_AGO if is_seeded else timedelta())
        given = dict(properties)
        identifier = str(given.pop("id", None) or uuid4()).lower()
        upn = str(given["userPrincipalName"])
        mail = {"RecipientTypeDetails": ACCOUNT, "Guid": str(uuid4()), **given.pop("exchange", {})}
        addresses = tuple(given.pop("proxyAddresses", ()))
        if mail["RecipientTypeDetails"] != ACCOUNT:
            addresses = addresses or (f"SMTP:{upn}",)
            mail.setdefault("LegacyExchangeDN", f"/o=ExchangeLabs/ou=Recipients/cn={identifier.replace('-', '')}")
        password = given.pop("passwordProfile", None)
        defaults = {"accountEnabled": True, "userType": "Member", "externalUserState": None, "otherMails": []}
        user = User(
            identifier,
            {**defaults, **given, "createdDateTime": created_at.strftime("%Y-%m-%dT%H:%M:%SZ")},
            mail,
            created_at,
            [(created_at, addresses)],
            passwords_set=int(password is not None),
            is_external=given.get("externalUserState") == "Accepted" or "#EXT#" in upn,
        )
        if is_seeded:
            self.domains.add(domain_of(upn))
        self.put_user(user)
        return user

    def is_verified(self, address: str) -> bool:
        """Whether the domain of an address or name is one of the tenant's."""
        return domain_of(address) in self.domains

    def put_user(self, user: User) -> None:
        """Put a user there as it is."""
        self.users[user.id] = user
        for name in (user.upn, user.mail["Guid"]):
            self._names[name.casefold()] = user
        for address in user.current:
            self._owners[address.casefold()] = user

    def rename(self, user: User, upn: str) -> None:
        """Give a user another UPN; the old one is free."""
        self._names.pop(user.upn.casefold(), None)
        user.properties["userPrincipalName"] = upn
        self._names[upn.casefold()] = user

    def add_group(
        self,
        display_name: str,
        identifier: str | None = None,
        members: Sequence[str] = (),
        *,
        kind: GroupKind = "security",
        licences: Sequence[str] = (),
        is_seeded: bool = True,
    ) -> Group:
        """Put a group there; a seeded one is seen at once."""
        created_at = self.clock.now() - (_LONG_AGO if is_seeded else timedelta())
        group = Group((identifier or str(uuid4())).lower(), display_name, created_at, kind=kind)
        group.mail = "" if kind == "security" else f"{display_name}@{INITIAL_DOMAIN}"
        group.members = dict.fromkeys(members, created_at)
        group.licences = [one.lower() for one in licences]
        self.groups[group.id] = group
        return group

    def delete_user(self, user: User) -> None:
        """Delete a user softly, as Entra does: it is gone from everywhere but the bin."""
        self.deleted[user.id] = self.users.pop(user.id)
        for name in (user.upn, user.mail["Guid"]):
            self._names.pop(name.casefold(), None)
        for address in user.current:
            self._owners.pop(address.casefold(), None)
        for group in self.groups.values():
            group.members.pop(user.id, None)

    def user_for_graph(self, key: str) -> User | None:
        """Find a user by id or UPN, if Graph sees it already."""
        user = self.users.get(key.casefold()) or self.owner_of_upn(key)
        return user if user is not None and self._is_seen(user.created_at, self.lags.graph) else None

    def group_for_graph(self, key: str) -> Group | None:
        """Find a group by id, if Graph sees it already; Exchange makes those that have an address."""
        group = self.groups.get(key.casefold())
        lag = self.lags.sync if group is not None and group.is_in_exchange else self.lags.graph
        return group if group is not None and self._is_seen(group.created_at, lag) else None

    def user_for_exchange(self, key: str) -> User | None:
        """Find a user by one of the identities that Exchange takes, if Exchange sees it already."""
        folded = key.casefold()
        user = self.users.get(folded) or self._names.get(folded) or self._owners.get(f"smtp:{folded}")
        user = user or next((one for one in self.users.values() if _alias(one) == folded), None)
        return user if user is not None and self._is_seen(user.created_at, self.lags.exchange) else None

    def is_seen_member(self, group: Group, identifier: str) -> bool:
        """Whether a direct membership is seen already."""
        since = group.members.get(identifier)
        return since is not None and self._is_seen(since, self.lags.graph)

    def is_seen_inside(self, group: Group, identifier: str) -> bool:
        """Whether somebody is seen in a group, directly or through other groups."""
        inner = (self.groups[member] for member in group.members if member in self.groups)
        return self.is_seen_member(group, identifier) or any(self.is_seen_inside(one, identifier) for one in inner)

    def addresses_for_graph(self, user: User) -> tuple[str, ...]:
        """Return the addresses that have been synchronised to Graph."""
        seen = [addresses for since, addresses in user.addresses if self._is_seen(since, self.lags.sync)]
        return seen[-1] if seen else ()

    def change_addresses(self, user: User, addresses: tuple[str, ...]) -> None:
        """Write addresses as Exchange does."""
        for address in user.current:
            self._owners.pop(address.casefold(), None)
        for address in addresses:
            self._owners[address.casefold()] = user
        user.addresses.append((self.clock.now(), addresses))

    def owner_of_upn(self, upn: str) -> User | None:
        """Find the user with a UPN, visible or not: names are taken at once."""
        found = self._names.get(upn.casefold())
        return found if found is not None and found.upn.casefold() == upn.casefold() else None

    def owner_of_address(self, address: str) -> User | None:
        """Find the user with an address, visible or not."""
        return self._owners.get(address.casefold())

    def _is_seen(self, since: datetime, lag: float) -> bool:
        return since + timedelta(seconds=lag) <= self.clock.now()


def domain_of(address: str) -> str:
    """Return the domain of an address or name."""
    return address.rpartition("@")[2].casefold()


def is_smtp(address: str) -> bool:
    """Whether an address with its prefix is a mail address."""
    return address[:5].casefold() == "smtp:"


def primary_of(addresses: Sequence[str]) -> str | None:
    """Return the primary mail address: the one whose prefix is in capitals."""
    return next((one.removeprefix("SMTP:") for one in addresses if one.startswith("SMTP:")), None)


def _alias(user: User) -> str:
    return str(user.properties.get("mailNickname") or "").casefold()
