"""Who and what is in the tenant: users with their two faces, one for Graph and one for Exchange, and groups.

A new object is not seen at once, and what Exchange writes is seen by Graph only after a while: three lags, in seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from matoolkit.clock import Clock

# What was put there by hand has been there for long enough to be seen.
_LONG_AGO = timedelta(days=30)


@dataclass(slots=True)
class Lags:
    """After how many seconds a new object is seen by Graph, by Exchange, and Exchange's addresses by Graph."""

    graph: float = 0
    exchange: float = 0
    sync: float = 0


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

    @property
    def upn(self) -> str:
        """The name with which the user signs in."""
        return str(self.properties["userPrincipalName"])


@dataclass(slots=True)
class Group:
    """A group, and since when each member is in it."""

    id: str
    display_name: str
    created_at: datetime
    mail: str = ""
    members: dict[str, datetime] = field(default_factory=dict)


class Directory:
    """Users, groups and invitations. Whoever calls it holds the tenant's lock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.lags = Lags()
        self.users: dict[str, User] = {}
        self.deleted: dict[str, User] = {}
        self.groups: dict[str, Group] = {}
        self.invitations: list[dict[str, Any]] = []
        self._names: dict[str, User] = {}
        self._owners: dict[str, User] = {}

    def add_user(self, properties: dict[str, Any], *, is_seeded: bool = False) -> User:
        """Put a user there; a seeded one is seen at once."""
        created_at = self.clock.now() - (_LONG_AGO if is_seeded else timedelta())
        given = dict(properties)
        identifier = str(given.pop("id", None) or uuid4()).lower()
        mail = given.pop("exchange", {})
        addresses = tuple(given.pop("proxyAddresses", ())) or (f"SMTP:{given['userPrincipalName']}",)
        password = given.pop("passwordProfile", None)
        defaults = {"accountEnabled": True, "userType": "Member", "externalUserState": None, "otherMails": []}
        user = User(
            identifier,
            {**defaults, **given, "createdDateTime": created_at.strftime("%Y-%m-%dT%H:%M:%SZ")},
            {"RecipientTypeDetails": "MailUser", "Guid": str(uuid4()), **mail},
            created_at,
            [(created_at, addresses)],
            passwords_set=int(password is not None),
        )
        self.put_user(user)
        return user

    def put_user(self, user: User) -> None:
        """Put a user there as it is."""
        self.users[user.id] = user
        for name in (user.upn, user.mail["Guid"]):
            self._names[name.casefold()] = user
        for address in user.addresses[-1][1]:
            self._owners[address.casefold()] = user

    def rename(self, user: User, upn: str) -> None:
        """Give a user another UPN; the old one is free."""
        self._names.pop(user.upn.casefold(), None)
        user.properties["userPrincipalName"] = upn
        self._names[upn.casefold()] = user

    def add_group(self, display_name: str, identifier: str | None = None, members: Sequence[str] = ()) -> Group:
        """Put a group there, seen at once."""
        created_at = self.clock.now() - _LONG_AGO
        group = Group((identifier or str(uuid4())).lower(), display_name, created_at, f"{display_name}@contoso.example")
        group.members = dict.fromkeys(members, created_at)
        self.groups[group.id] = group
        return group

    def delete_user(self, user: User) -> None:
        """Delete a user softly, as Entra does: it is gone from everywhere but the bin."""
        self.deleted[user.id] = self.users.pop(user.id)
        for name in (user.upn, user.mail["Guid"]):
            self._names.pop(name.casefold(), None)
        for address in user.addresses[-1][1]:
            self._owners.pop(address.casefold(), None)
        for group in self.groups.values():
            group.members.pop(user.id, None)

    def user_for_graph(self, key: str) -> User | None:
        """Find a user by id or UPN, if Graph sees it already."""
        user = self.users.get(key.casefold()) or self.owner_of_upn(key)
        return user if user is not None and self._is_seen(user.created_at, self.lags.graph) else None

    def user_for_exchange(self, key: str) -> User | None:
        """Find a user by one of the identities that Exchange takes, if Exchange sees it already."""
        folded = key.casefold()
        user = self.users.get(folded) or self._names.get(folded) or self._owners.get(f"smtp:{folded}")
        user = user or next((one for one in self.users.values() if _alias(one) == folded), None)
        return user if user is not None and self._is_seen(user.created_at, self.lags.exchange) else None

    def is_seen_member(self, group: Group, user: User) -> bool:
        """Whether a membership is seen already."""
        since = group.members.get(user.id)
        return since is not None and self._is_seen(since, self.lags.graph)

    def addresses_for_graph(self, user: User) -> tuple[str, ...]:
        """Return the addresses that have been synchronised to Graph."""
        seen = [addresses for since, addresses in user.addresses if self._is_seen(since, self.lags.sync)]
        return seen[-1] if seen else ()

    def change_addresses(self, user: User, addresses: tuple[str, ...]) -> None:
        """Write addresses as Exchange does."""
        for address in user.addresses[-1][1]:
            self._owners.pop(address.casefold(), None)
        for address in addresses:
            self._owners[address.casefold()] = user
        user.addresses.append((self.clock.now(), addresses))

    def owner_of_upn(self, upn: str) -> User | None:
        """Find whoever has a UPN, seen or not: names are taken at once."""
        found = self._names.get(upn.casefold())
        return found if found is not None and found.upn.casefold() == upn.casefold() else None

    def owner_of_address(self, address: str) -> User | None:
        """Find whoever has an address, seen or not."""
        return self._owners.get(address.casefold())

    def _is_seen(self, since: datetime, lag: float) -> bool:
        return since + timedelta(seconds=lag) <= self.clock.now()


def primary_of(addresses: Sequence[str]) -> str | None:
    """Return the primary mail address: the one whose prefix is in capitals."""
    return next((one.removeprefix("SMTP:") for one in addresses if one.startswith("SMTP:")), None)


def _alias(user: User) -> str:
    return str(user.properties.get("mailNickname") or "").casefold()
