"""A simulated tenant on a virtual clock, and a worker's context that calls it over HTTP."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx

from matoolkit.backoff import Backoff
from matoolkit.clock import VirtualClock
from matoolkit.worker.clients import Clients, connect_to_simulation
from matoolkit.worker.context import Context
from matoolkit.worker.functions import built_in
from matoolkit.worker.tenant import Tenant, TenantServer
from matoolkit.worker.tenant.directory import MAIL_USER, Lags, User
from matoolkit.worker.tenant.faults import Fault
from tests.databases import NOON

JANE = "11111111-aaaa-4bbb-8ccc-000000000001"
OMAR = "11111111-aaaa-4bbb-8ccc-000000000002"
NOBODY = "11111111-aaaa-4bbb-8ccc-00000000dead"
STAFF = "22222222-aaaa-4bbb-8ccc-000000000001"
LIST = "22222222-aaaa-4bbb-8ccc-000000000002"
NO_GROUP = "22222222-aaaa-4bbb-8ccc-00000000dead"
MAILBOX = "33333333-aaaa-4bbb-8ccc-000000000001"
ARCHIVE = "33333333-aaaa-4bbb-8ccc-000000000002"

MADE_UP = "Made-Up-Password-1"

FUNCTIONS = built_in()


class SharedClock(VirtualClock):
    """A virtual clock that several threads may move."""

    def __init__(self) -> None:
        super().__init__(NOON)
        self._lock = threading.Lock()

    def advance(self, by: timedelta) -> None:
        with self._lock:
            super().advance(by)


@dataclass
class Concealed:
    """Remembers what has to be masked."""

    values: list[str] = field(default_factory=list)

    def get(self, name: str) -> str:
        raise NotImplementedError(name)

    def conceal(self, value: str) -> None:
        self.values.append(value)


@dataclass
class Office:
    """A tenant with Jane, Omar and a group of staff in it, and the context of a worker."""

    tenant: Tenant
    clock: SharedClock
    clients: Clients
    secrets: Concealed = field(default_factory=Concealed)

    @property
    def context(self) -> Context:
        return Context(self.clients.graph, self.clients.exchange, self.clock, "contoso.example", self.secrets)

    def run(self, function: str, parameters: dict[str, Any]) -> Any:
        return FUNCTIONS.find(function).run(self.context, parameters)

    def user(self, identifier: str = JANE) -> User:
        return self.tenant.directory.users[identifier]

    def members(self) -> set[str]:
        return set(self.tenant.directory.groups[STAFF].members)

    def addresses(self, identifier: str = JANE) -> set[str]:
        return set(self.user(identifier).addresses[-1][1])

    def goes_wrong(self, kind: Any, match: str = "", **more: Any) -> None:
        self.tenant.faults.add(Fault(kind, match, **more))

    def seconds(self) -> float:
        """How much time has passed."""
        return self.clock.monotonic()

    def state(self) -> Any:
        """Everything in the tenant that a second run could have changed."""
        directory = self.tenant.directory
        users = {
            one.id: (
                *(one.properties, one.mail, one.current, one.passwords_set, one.invitation_mails),
                *(one.licences, one.manager, one.passes, one.sent),
            )
            for one in directory.users.values()
        }
        groups = {one.id: sorted(one.members) for one in directory.groups.values()}
        return repr((sorted(users.items()), groups, sorted(directory.deleted), directory.moves))


@contextmanager
def office(
    server: TenantServer, http: httpx.Client, backoff: Backoff | None = None, clock: SharedClock | None = None
) -> Iterator[Office]:
    """A new tenant at the server's address."""
    clock = clock or SharedClock()
    tenant = server.tenant = Tenant(clock)
    directory = tenant.directory
    directory.lags = Lags(0, 0, 0, 0)
    directory.add_user(_person(JANE, "Jane Doe", "jane"), is_seeded=True)
    directory.add_user(_person(OMAR, "Omar Haddad", "omar"), is_seeded=True)
    directory.add_group("staff", STAFF)
    directory.add_group("all-staff", LIST, kind="distribution")
    yield Office(tenant, clock, connect_to_simulation(server.url, clock, backoff or Backoff(), http))
    tenant.faults.clear()


def _person(identifier: str, name: str, nickname: str) -> dict[str, Any]:
    return {
        "id": identifier,
        "displayName": name,
        "mailNickname": nickname,
        "userPrincipalName": f"{nickname}@contoso.example",
        "exchange": {"RecipientTypeDetails": MAIL_USER},
    }
