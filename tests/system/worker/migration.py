"""People who move by the sample runbook, with every part of the system but real time: a week takes seconds."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from matoolkit.admin.publishing import publish
from matoolkit.bus.consumer import Consumer
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR
from matoolkit.clock import VirtualClock
from matoolkit.settings import Settings, WorkerSettings
from matoolkit.store import Store
from matoolkit.store.batches import BatchRow, batches_page
from matoolkit.system import build_orchestrator, build_scheduler, build_worker
from matoolkit.worker.functions import built_in
from matoolkit.worker.masking import Masking
from matoolkit.worker.runner import Runner
from matoolkit.worker.tenant import Tenant, TenantServer

SAMPLE = (Path(__file__).parents[3] / "runbooks" / "user-migration.yaml").read_text(encoding="utf-8")
OUR_GROUP = "5b1f4a6e-6f5e-4c43-9d0e-2f4b8a7f0c11"
OUR_USER = "0d7a52c1-3c1c-4a0e-8a53-6f6a7f1b9e22"
LICENCES = "22222222-aaaa-4bbb-8ccc-000000000001"
COLUMNS = [
    *("SourceUserId", "SourceEmail", "DisplayName", "MailNickname", "TargetUpn", "PrimaryEmail"),
    *("ExchangeGuid", "ProxyAddresses", "LicenceGroupId", "CutoverTime"),
]


def on_sql(runbook: str) -> str:
    """Let the sample read an SQL database, and give every account a password that the runbook names."""
    source = re.sub(r"type: dataverse\n  connection: \w+", "type: sql\n  connection: PEOPLE", runbook)
    query = f"  query: SELECT {', '.join(COLUMNS)} FROM people\n"
    source = re.sub(r"  # The window.*?(?=  primary_key)", query, source, flags=re.DOTALL)
    return source.replace(
        "          AccountEnabled: false\n",
        "          AccountEnabled: false\n          Password: secret:initial-password\n",
    )


@dataclass
class Migration:
    """The whole system, with people to move."""

    store: Store
    clock: VirtualClock
    tenant: Tenant
    url: str
    place: Path
    environ: dict[str, str] = field(default_factory=dict)
    masking: Masking = field(default_factory=Masking)

    def __post_init__(self) -> None:
        settings = Settings()
        self.bus = SqlBus(self.store)
        environ = {"PEOPLE": f"sqlite:///{self.place / 'people.db'}"}
        self.scheduler = build_scheduler(settings, self.store, self.bus, environ, self.clock)
        self.orchestrator = build_orchestrator(settings, self.store, self.bus)
        self.events = Consumer(self.store, self.bus, EVENTS_OF_ORCHESTRATOR, self.orchestrator.handle)
        self.results = Consumer(self.store, self.bus, RESULTS_OF_ORCHESTRATOR, self.orchestrator.handle)
        self.worker = self._new_worker(self.bus)

    def restart_worker(self, kind: type[SqlBus] = SqlBus) -> None:
        self.worker.close()
        self.worker = self._new_worker(kind(self.store))

    def _new_worker(self, bus: SqlBus) -> Runner:
        settings = WorkerSettings(simulated_tenant_url=self.url)
        return build_worker(bus, settings, "worker-01", built_in(), self.masking, self.environ, self.clock)

    def add_people(self, count: int) -> None:
        cutover = (self.clock.now() + timedelta(days=6)).isoformat()
        rows = [
            (
                f"p{n}",
                f"person{n}@source.example",
                f"Person {n}",
                f"person{n}",
                f"person{n}@contoso.example",
                f"first.last{n}@contoso.example",
                f"33333333-aaaa-4bbb-8ccc-{n:012}",
                f"smtp:a{n}@contoso.example;smtp:b{n}@contoso.example",
                LICENCES,
                cutover,
            )
            for n in range(count)
        ]
        with closing(sqlite3.connect(self.place / "people.db")) as people, people:
            people.execute(f"CREATE TABLE people ({', '.join(COLUMNS)})")
            people.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(COLUMNS))})", rows)
        publish(self.store, on_sql(SAMPLE), by="ann", now=self.clock.now(), enable=True)

    def go_on(self, **duration: float) -> None:
        """Let time pass, and everybody do what is to be done then."""
        self.clock.advance(timedelta(**duration))
        self.scheduler.tick()
        self.scheduler.sweep()
        self.bus.sweep()
        self.orchestrator.sweep()
        while self.events.turn() + self.results.turn() + self.worker.turn(20):
            pass

    def batch(self) -> BatchRow:
        with self.store.reading() as tx:
            (batch,) = batches_page(tx, limit=10)
        return batch

    def end_state(self) -> list[dict[str, Any]]:
        """Return what the tenant has of everybody who moved."""
        directory = self.tenant.directory
        return [
            {
                "upn": user.upn,
                "enabled": user.properties["accountEnabled"],
                "licence": user.id in directory.groups[LICENCES].members,
                "guid": user.mail.get("ExchangeGuid"),
                "addresses": sorted(user.addresses[-1][1]),
            }
            for user in sorted(directory.users.values(), key=lambda user: user.upn)
            if user.id != OUR_USER
        ]


def wanted_end_state(count: int) -> list[dict[str, Any]]:
    people = [
        {
            "upn": f"person{n}@contoso.example",
            "enabled": True,
            "licence": True,
            "guid": f"33333333-aaaa-4bbb-8ccc-{n:012}",
            "addresses": sorted(
                [
                    f"SMTP:first.last{n}@contoso.example",
                    f"smtp:a{n}@contoso.example",
                    f"smtp:b{n}@contoso.example",
                    f"smtp:person{n}@contoso.example",
                ]
            ),
        }
        for n in range(count)
    ]
    return sorted(people, key=lambda person: str(person["upn"]))


@contextmanager
def migration(store: Store, clock: VirtualClock, place: Path, environ: dict[str, str]) -> Iterator[Migration]:
    tenant = Tenant(clock)
    tenant.directory.add_user(
        {"id": OUR_USER, "displayName": "us", "mailNickname": "us", "userPrincipalName": "us@contoso.example"},
        is_seeded=True,
    )
    tenant.directory.add_group("migration", OUR_GROUP, [OUR_USER])
    tenant.directory.add_group("licences", LICENCES)
    with TenantServer(tenant) as server:
        moving = Migration(store, clock, tenant, server.url, place, environ)
        yield moving
        moving.worker.close()
