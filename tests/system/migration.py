"""People who move by the sample runbooks, with every part of the system but real time: a week takes seconds.

Two tenants, each with a worker: the one that people leave, and the one to which they move.
"""

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
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
from matoolkit.ports import Bus
from matoolkit.settings import Settings, WorkerSettings
from matoolkit.store import Store
from matoolkit.store.batches import BatchRow, batches_page
from matoolkit.system import build_orchestrator, build_scheduler, build_worker
from matoolkit.worker.functions import built_in
from matoolkit.worker.masking import Masking
from matoolkit.worker.runner import Runner
from matoolkit.worker.tenant import Tenant, TenantServer
from matoolkit.worker.tenant.directory import MAILBOX
from matoolkit.worker.tenant.licences import E3

RUNBOOKS = Path(__file__).parents[2] / "runbooks"
SAMPLE = (RUNBOOKS / "user-migration.yaml").read_text(encoding="utf-8")
OUR_GROUP = "5b1f4a6e-6f5e-4c43-9d0e-2f4b8a7f0c11"
OUR_APPLICATION = "0d7a52c1-3c1c-4a0e-8a53-6f6a7f1b9e22"
LICENCES = "22222222-aaaa-4bbb-8ccc-000000000001"
ADMINS = "admins@contoso.example"
COLUMNS = (
    *("SourceUserId", "SourceUpn", "DisplayName", "MailNickname", "TargetUpn", "PrimaryEmail"),
    *("ProxyAddresses", "LicenceGroupId", "CutoverTime"),
)


def on_sql(runbook: str, columns: Sequence[str] = COLUMNS) -> str:
    """Let a sample read an SQL database, and give every mail user a password that the runbook names."""
    source = re.sub(
        r"type: \w+\n  connection: \w+\n(  warehouse_id: \w+\n)?", "type: sql\n  connection: PEOPLE\n", runbook
    )
    query = f"  query: SELECT {', '.join(columns)} FROM people\n"
    source = re.sub(r"(  # The window[^\n]*\n(  #[^\n]*\n)*)?  query: \|\n(    [^\n]*\n)+", query, source)
    return source.replace(
        "          AccountEnabled: false\n",
        "          AccountEnabled: false\n          Password: secret:initial-password\n",
    )


def guid_of(number: int) -> str:
    return f"33333333-aaaa-4bbb-8ccc-{number:012}"


def legacy_name_of(number: int) -> str:
    return f"/o=Source/ou=Recipients/cn=person{number}"


@dataclass
class Migration:
    """The whole system, with people to move."""

    store: Store
    clock: VirtualClock
    tenant: Tenant
    source: Tenant
    urls: Mapping[str, str]
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
        self.workers = [self.new_worker(name, self.bus) for name in self.urls]
        self.cutover = (self.clock.now() + timedelta(days=6)).isoformat()

    def restart_worker(self, kind: type[SqlBus] = SqlBus) -> None:
        self.close()
        self.workers = [self.new_worker(name, kind(self.store)) for name in self.urls]

    def close(self) -> None:
        for worker in self.workers:
            worker.close()

    def new_worker(self, name: str, bus: Bus) -> Runner:
        settings = WorkerSettings(
            simulated_tenant_url=self.urls[name], alert_sender="us@contoso.example", alert_recipients=ADMINS
        )
        return build_worker(bus, settings, name, built_in(), self.masking, self.environ, self.clock)

    def play(self, runbook: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Put rows into the source, and publish a runbook that reads them."""
        with closing(sqlite3.connect(self.place / "people.db")) as people, people:
            people.execute(f"CREATE TABLE people ({', '.join(columns)})")
            people.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(columns))})", rows)
        publish(self.store, on_sql(runbook, columns), by="ann", now=self.clock.now(), enable=True)

    def add_people(self, count: int, runbook: str = SAMPLE) -> None:
        self.play(runbook, COLUMNS, [self.person(number) for number in range(count)])

    def person(self, number: int) -> tuple[str, ...]:
        """Give somebody a mailbox in the tenant that people leave, and return the row that says when to move."""
        upn = f"person{number}@source.example"
        mail = {"RecipientTypeDetails": MAILBOX, "ExchangeGuid": guid_of(number)}
        person = {"displayName": f"Person {number}", "mailNickname": f"person{number}", "userPrincipalName": upn}
        exchange = {**mail, "LegacyExchangeDN": legacy_name_of(number)}
        self.source.directory.add_user({**person, "exchange": exchange}, is_seeded=True)
        self.tenant.directory.remote_mailboxes[guid_of(number)] = {"LegacyExchangeDN": legacy_name_of(number)}
        return (
            f"p{number}",
            upn,
            f"Person {number}",
            f"person{number}",
            f"person{number}@contoso.example",
            f"first.last{number}@contoso.example",
            f"smtp:a{number}@contoso.example;smtp:b{number}@contoso.example",
            LICENCES,
            self.cutover,
        )

    def change_source(self, statement: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.place / "people.db")) as people, people:
            people.execute(statement, values)

    def go_on(self, **duration: float) -> None:
        """Let time pass, and everybody do what is to be done then."""
        self.clock.advance(timedelta(**duration))
        self.scheduler.tick()
        self.scheduler.sweep()
        self.bus.sweep()
        self.orchestrator.sweep()
        while self.events.turn() + self.results.turn() + sum(worker.turn(20) for worker in self.workers):
            pass

    def batch(self) -> BatchRow:
        with self.store.reading() as tx:
            (batch,) = batches_page(tx, limit=10)
        return batch

    def mails(self) -> list[str]:
        """The subjects of all that was mailed."""
        users = self.tenant.directory.users.values()
        return sorted(str(mail["subject"]) for user in users for mail in user.sent)

    def end_state(self) -> list[dict[str, Any]]:
        """Return what the tenant has of everybody who moved."""
        directory = self.tenant.directory
        return [
            {
                "upn": user.upn,
                "enabled": user.properties["accountEnabled"],
                "licence": user.id in directory.groups[LICENCES].members,
                "kind": user.kind,
                "guid": user.mail.get("ExchangeGuid"),
                "addresses": sorted(user.current),
            }
            for user in sorted(directory.users.values(), key=lambda user: user.upn)
            if user.upn != "us@contoso.example"
        ]


def wanted_end_state(*numbers: int) -> list[dict[str, Any]]:
    people = [
        {
            "upn": f"person{n}@contoso.example",
            "enabled": True,
            "licence": True,
            "kind": MAILBOX,
            "guid": guid_of(n),
            "addresses": sorted(
                [
                    f"SMTP:first.last{n}@contoso.example",
                    f"smtp:a{n}@contoso.example",
                    f"smtp:b{n}@contoso.example",
                    f"smtp:person{n}@contoso.example",
                    f"X500:{legacy_name_of(n)}",
                ]
            ),
        }
        for n in numbers
    ]
    return sorted(people, key=lambda person: str(person["upn"]))


@contextmanager
def migration(store: Store, clock: VirtualClock, place: Path, environ: dict[str, str]) -> Iterator[Migration]:
    tenant, source = Tenant(clock), Tenant(clock)
    us = {"displayName": "us", "userPrincipalName": "us@contoso.example", "exchange": {"RecipientTypeDetails": MAILBOX}}
    tenant.directory.add_user(us, is_seeded=True)
    tenant.directory.applications[OUR_APPLICATION] = "migration"
    tenant.directory.add_group("migration", OUR_GROUP, [OUR_APPLICATION])
    tenant.directory.add_group("licences", LICENCES, licences=[E3])
    with TenantServer(tenant) as server, TenantServer(source) as other:
        urls = {"worker-01": server.url, "worker-source": other.url}
        moving = Migration(store, clock, tenant, source, urls, place, environ)
        yield moving
        moving.close()
