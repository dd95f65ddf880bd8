"""The composition root: the only module that chooses adapters."""

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from matoolkit.bus.draining import Drain
from matoolkit.bus.relay import Relay
from matoolkit.bus.servicebus import Address, ServiceBus
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import LOCK_DURATION, WORKER_JOBS, WORKER_RESULTS, jobs_of_worker
from matoolkit.bus.wire import decode
from matoolkit.clock import Clock, SystemClock
from matoolkit.clouds import CLOUDS
from matoolkit.domain.messages import Message
from matoolkit.errors import FastCalendar
from matoolkit.orchestrator import Orchestrator
from matoolkit.orchestrator.agenda import Limits
from matoolkit.ports import Bus, Publisher, Received, Source
from matoolkit.runbook.model import DataSource
from matoolkit.scheduler.leasing import SchedulerLease
from matoolkit.scheduler.tick import Scheduler
from matoolkit.settings import Settings, WorkerSettings, cloud_of
from matoolkit.sources.choice import open_source
from matoolkit.store import Store, open_store
from matoolkit.store.pace import stored_pace
from matoolkit.store.sql.transaction import PATIENCE_SECONDS
from matoolkit.store.upgrade import require_current_schema
from matoolkit.worker import Context, Registry
from matoolkit.worker.clients import Clients, open_clients
from matoolkit.worker.custom import BrokenFile, register_custom
from matoolkit.worker.execution import Execution
from matoolkit.worker.functions import built_in
from matoolkit.worker.masking import Masking
from matoolkit.worker.runner import Limits as WorkerLimits
from matoolkit.worker.runner import Runner
from matoolkit.worker.secrets import EnvironmentSecrets, SecretReader, WorkerSecrets, key_vault
from matoolkit.worker.shell.choice import exchange_of, open_shell

# A scheduler that died is replaced after this many sweeps without a sign of life.
_SWEEPS_MISSED = 3
# A lock is renewed this often before it would run out, so that two renewals may fail.
_RENEWALS = 3


def open_database(settings: Settings, patience_seconds: float = PATIENCE_SECONDS) -> Store:
    """Open the state database, whatever is in it."""
    return open_store(
        settings.database_url.get_secret_value(),
        patience_seconds=patience_seconds,
        execution=settings.sql_execution,
        cloud=CLOUDS[settings.cloud],
    )


def open_state(settings: Settings) -> Store:
    """Open the state database; its tables must be those of this version, and its calendar the clock's."""
    return _open_if(settings, _require_calendar_of_clock)


def _require_calendar_of_clock(store: Store) -> None:
    require_current_schema(store)
    with store.reading() as tx:
        pace = stored_pace(tx)
    if pace is not None and pace.speed != 1:
        raise FastCalendar(pace.speed)


def _open_if(settings: Settings, check: Callable[[Store], None]) -> Store:
    """Open the state database if it passes a check; otherwise it is closed again, because some hosts try for hours."""
    with ExitStack() as stack:
        store = open_database(settings)
        stack.callback(store.close)
        check(store)
        stack.pop_all()
        return store


@dataclass(frozen=True, slots=True)
class Messaging:
    """The bus of a process, what the process publishes with, and what has to be swept from time to time.

    With an outbox every process that publishes sweeps it: a message must not wait for one that is down. An orchestrator
    drains the dead letters of a bus that is not in the state's database.
    """

    bus: SqlBus | ServiceBus
    publisher: Publisher
    outbox: Relay | None = None
    drain: Drain | None = None

    @property
    def sweeps(self) -> list[Callable[[], object]]:
        """What a scheduler and an orchestrator call again and again."""
        return [self.bus.sweep] if self.outbox is None else [self.outbox.sweep, self.bus.sweep]


def open_bus(settings: Settings, store: Store) -> Messaging:
    """Open the bus that the settings name; to publish on one that is not in the state's database takes an outbox."""
    if settings.bus == "sql":
        bus = SqlBus(store)
        return Messaging(bus, bus)
    far = ServiceBus(service_bus_address(settings))
    relay = Relay(store, far)
    return Messaging(far, relay, relay, Drain(store, far))


@contextmanager
def bus_of_worker(settings: Settings, worker: WorkerSettings) -> Iterator[SqlBus | ServiceBus]:
    """Open the bus of a worker for a while; only the SQL bus needs the database."""
    with ExitStack() as stack:
        bus: SqlBus | ServiceBus
        if settings.bus == "sql":
            # A worker may read the tables of the bus and no others.
            store = _open_if(settings, require_current_schema)
            stack.callback(store.close)
            bus = SqlBus(store)
        else:
            names = {WORKER_JOBS: worker.jobs_topic_name, WORKER_RESULTS: worker.results_topic_name}
            bus = ServiceBus(service_bus_address(settings), topic_names=names)
        bus.start()
        stack.callback(bus.stop)
        yield bus


def service_bus_address(settings: Settings) -> Address:
    """Return where the Service Bus of the settings is."""
    return Address(settings.service_bus_namespace, settings.service_bus_connection_string, CLOUDS[settings.cloud])


def source_opener(environ: Mapping[str, str] = os.environ) -> Callable[[DataSource], Source]:
    """Return what opens the source of a runbook."""
    return partial(open_source, environ=environ, cloud=cloud_of(environ))


def rows_of_file(file: Path, read_cell: Callable[[Any], Any]) -> Source:
    """Return a file of rows as a source: CSV or a workbook, which a query knows as the table `rows`."""
    from matoolkit.sources.files.source import FileSource

    return FileSource(file.parent, file.name, None, SystemClock(), read_cell=read_cell)


def read_message(topic: str, message_type: str, body: str) -> Message:
    """Read a message that was kept as text."""
    return decode(topic, message_type, body)


def build_scheduler(
    settings: Settings,
    store: Store,
    publisher: Publisher,
    environ: Mapping[str, str] = os.environ,
    clock: Clock | None = None,
    stop: threading.Event | None = None,
) -> Scheduler:
    """Put a scheduler together; once told to stop it begins no other transaction."""
    length = timedelta(seconds=_SWEEPS_MISSED * settings.sweep_seconds)
    holder = f"{socket.gethostname()}:{os.getpid()}"
    return Scheduler(
        store=store,
        publisher=publisher,
        open_source=source_opener(environ),
        clock=clock or SystemClock(),
        lease=SchedulerLease(store, holder, length, stop),
        interval=timedelta(seconds=settings.tick_seconds),
    )


def build_orchestrator(settings: Settings, store: Store, publisher: Publisher) -> Orchestrator:
    """Put an orchestrator together."""
    return Orchestrator(store, publisher, Limits(settings.step_timeout, settings.throttle_limit))


def functions_of_worker(settings: WorkerSettings) -> tuple[Registry, list[BrokenFile]]:
    """Return the built-in functions and those of your own, and which files could not be used."""
    registry = built_in()
    folder = settings.custom_modules_path
    return registry, register_custom(registry, folder) if folder else []


@contextmanager
def tenant_opened(
    settings: WorkerSettings, masking: Masking, environ: Mapping[str, str] = os.environ
) -> Iterator[Clients]:
    """Open the clients of a worker's tenant for a while, without a worker."""
    clock = SystemClock()
    reader = _reader(settings, environ, clock)
    clients = open_clients(settings, WorkerSecrets(reader, masking).read, clock, masking.conceal)
    try:
        yield clients
    finally:
        clients.close()
        reader.close()


def build_worker(
    bus: Bus,
    settings: WorkerSettings,
    worker_id: str,
    registry: Registry,
    masking: Masking,
    environ: Mapping[str, str] = os.environ,
    clock: Clock | None = None,
) -> Runner:
    """Put a worker together that can do the functions of a registry."""
    hands = _hands(settings, worker_id, registry, masking, environ, clock or SystemClock())
    limits = WorkerLimits(
        threads=settings.max_parallelism,
        idle_seconds=settings.idle_timeout_seconds,
        grace_seconds=settings.shutdown_grace_seconds,
        renew_seconds=LOCK_DURATION.total_seconds() / _RENEWALS,
        announces=settings.worker_announce,
    )
    return Runner(bus, jobs_of_worker(worker_id), _read, hands.execution, limits, hands.let_go, hands.sign_in)


@contextmanager
def execution_opened(
    settings: WorkerSettings,
    worker_id: str,
    registry: Registry,
    masking: Masking,
    environ: Mapping[str, str] = os.environ,
) -> Iterator[Execution]:
    """Open what does a worker's jobs for a while, without a bus."""
    hands = _hands(settings, worker_id, registry, masking, environ, SystemClock())
    try:
        yield hands.execution
    finally:
        hands.let_go()


@dataclass(frozen=True, slots=True)
class _Hands:
    """What does a worker's jobs, what signs it in, and what lets everything go."""

    execution: Execution
    sign_in: Callable[[], None]
    let_go: Callable[[], None]


def _hands(
    settings: WorkerSettings,
    worker_id: str,
    registry: Registry,
    masking: Masking,
    environ: Mapping[str, str],
    clock: Clock,
) -> _Hands:
    reader = _reader(settings, environ, clock)
    secrets = WorkerSecrets(reader, masking, own=settings.cert_name)
    clients = open_clients(settings, secrets.read, clock, masking.conceal)
    shell = open_shell(settings, secrets.read, clock)
    context = Context(
        clients.graph,
        exchange_of(settings, clients.exchange, shell),
        clock,
        settings.target_tenant_id or "",
        secrets,
        shell,
        settings.alert_sender,
        tuple(filter(None, (one.strip() for one in (settings.alert_recipients or "").split(",")))),
    )

    def sign_in() -> None:
        reader.sign_in()
        for place in clients.sign_ins:
            place.tokens.token()

    def let_go() -> None:
        clients.close()
        reader.close()
        if shell is not None:
            shell.close()

    return _Hands(Execution(worker_id, registry, context, masking, clock), sign_in, let_go)


def _reader(settings: WorkerSettings, environ: Mapping[str, str], clock: Clock) -> SecretReader:
    if settings.key_vault_name:
        return key_vault(settings.key_vault_name, clock, CLOUDS[settings.cloud])
    return EnvironmentSecrets(environ)


def _read(received: Received) -> Message:
    return decode(received.subscription.topic, received.message_type, received.body)
