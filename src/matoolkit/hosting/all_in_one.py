"""Scheduler, orchestrator, worker, admin API and a simulated tenant in one process: the whole system to try."""

import logging
import math
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime

from matoolkit.bus.sql import SqlBus
from matoolkit.clock import Clock, FastClock, Pace, SystemClock
from matoolkit.errors import InvalidSettings
from matoolkit.hosting.api import services_of, serving, sign_in_for
from matoolkit.hosting.demo import NAME as DEMO
from matoolkit.hosting.demo import SOURCE_VARIABLE
from matoolkit.hosting.entrance import way_to_pages
from matoolkit.hosting.folder import FOLDER, KEY, SOURCE, alone_in, forget_all
from matoolkit.hosting.orchestrator import orchestrator_parts
from matoolkit.hosting.process import Part, run_parts
from matoolkit.hosting.sockets import listening, listening_nearby, port_of
from matoolkit.hosting.story import Line, Story
from matoolkit.hosting.telemetry import telemetry_of
from matoolkit.hosting.trial import Trial, begin, begin_pace, open_tenant, remembered_rows
from matoolkit.hosting.trial_sources import TrialSources
from matoolkit.runbook.parse import parse_runbook
from matoolkit.scheduler.loop import SchedulerLoop
from matoolkit.settings import Settings, WorkerSettings, load_settings, variable_names
from matoolkit.store import Store
from matoolkit.store.runbooks import active_runbooks
from matoolkit.store.upgrade import upgrade
from matoolkit.system import (
    Messaging,
    build_scheduler,
    build_worker,
    functions_of_worker,
    open_bus,
    open_database,
    rows_of_file,
    source_opener,
)
from matoolkit.worker.masking import Masking
from matoolkit.worker.runner import Runner
from matoolkit.worker.streams import guarded_streams
from matoolkit.worker.tenant import Tenant, TenantServer

HOST = "127.0.0.1"
API_PORT = 8080
TENANT_PORT = 8765
WORKER = "worker-01"
# Seconds of the clock, for something to look at; what the environment says comes first.
_TICK_SECONDS, _SWEEP_SECONDS = 2, 1
# However fast the calendar runs, there are no more than four ticks in a second.
_LEAST_TICK_SECONDS = 0.25
# A job that takes longer is given back, and done again after the next start.
_GRACE_SECONDS = 5

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options of a start; without a port the API takes its usual one, or one nearby.

    Without a runbook it goes on with what is there, and is the demo if there is nothing. So is the speed.
    """

    port: int | None = None
    is_fresh: bool = False
    has_own_database: bool = False
    trial: Trial | None = None
    speed: int | None = None


@dataclass(frozen=True, slots=True)
class Places:
    """What runs where, on what and how fast, and what was there before; nothing if this is the first start."""

    api_url: str
    tenant_url: str
    database: str
    so_far: tuple[Line, ...] | None
    runbooks: tuple[str, ...] = (DEMO,)
    pace: Pace | None = None


@dataclass(frozen=True, slots=True)
class Audience:
    """Receives what runs where, and then what happens; without `tell` only the log says it."""

    welcome: Callable[[Places], None]
    tell: Callable[[Sequence[Line]], None] | None = None


def quickened(settings: Settings, speed: int = 1) -> Settings:
    """Return settings for something to look at, with everything that was set left as it is.

    Ticks are counted by the calendar: as often as a scheduler usually ticks, if the calendar is that fast.
    """
    usual = int(Settings.model_fields["tick_seconds"].default)
    quick = {"tick_seconds": min(usual, _TICK_SECONDS * speed), "sweep_seconds": _SWEEP_SECONDS}
    chosen = {name: value for name, value in quick.items() if name not in settings.model_fields_set}
    wanted = settings.model_copy(update=chosen)
    least = math.ceil(_LEAST_TICK_SECONDS * speed)
    return wanted.model_copy(update={"tick_seconds": max(wanted.tick_seconds, least)})


def run_all(
    settings: Settings, environ: Mapping[str, str], wishes: Wishes, audience: Audience, stop: threading.Event
) -> None:
    """Run everything until told to stop; the next start goes on from there, however this one ended."""
    with ExitStack() as stack:
        stack.enter_context(alone_in(FOLDER))
        place = stack.enter_context(_place(wishes.port))
        if wishes.is_fresh:
            forget_all()
        store = open_database(settings)
        stack.callback(store.close)
        upgrade(store)
        stack.enter_context(telemetry_of(settings, "up", watched=store, environ=environ))
        clock, origin = _begun(store, settings, wishes.speed)
        is_first = begin(store, wishes.trial, clock.now())
        tenant = open_tenant(clock)
        server = stack.enter_context(_tenant_server(tenant))
        messaging = open_bus(settings, store)
        stack.callback(messaging.bus.stop)
        if isinstance(messaging.bus, SqlBus) and not wishes.has_own_database:
            messaging.bus.take_over()
        environ = _with_source(environ)
        sources = TrialSources(store, tenant, source_opener(environ), rows_of_file, remembered_rows(), clock, origin)
        speed = store.pace.speed if store.pace else 1
        system = _System(quickened(settings, speed), environ, store, messaging, clock, sources, speed)
        story = Story(store, clock, audience.tell or (lambda _: None))
        so_far = None if is_first else tuple(story.so_far())
        api_url = f"http://{HOST}:{port_of(place)}"
        audience.welcome(Places(api_url, server.url, _address(store), so_far, system.runbooks(), store.pace))
        masking = Masking()
        stack.enter_context(guarded_streams(masking))
        parts = {"api": system.api(place)}
        for name in system.workers():
            worker = system.worker(name, server.url, masking)
            stack.callback(worker.close)
            parts[name] = worker.run
        if audience.tell:
            parts["story"] = story.tell_until
        system.run(parts, stop)
        story.tell()
    log.info("stopped; the next start goes on from here")


def _begun(store: Store, settings: Settings, speed: int | None) -> tuple[Clock, datetime]:
    """Decide how fast time runs, let the store know first of all, and return the clock, and where its time began."""
    pace = begin_pace(store, speed, SystemClock().now())
    if pace.speed == 1:
        return SystemClock(), pace.origin
    if settings.bus != "sql":
        raise InvalidSettings(["a bus outside the database keeps its own time: --speed needs MATOOLKIT_BUS=sql"])
    store.pace = pace
    return FastClock(SystemClock(), pace), pace.origin


@dataclass(frozen=True, slots=True)
class _System:
    """What the parts are made from."""

    settings: Settings
    environ: Mapping[str, str]
    store: Store
    messaging: Messaging
    clock: Clock
    sources: TrialSources
    speed: int

    def runbooks(self) -> tuple[str, ...]:
        """Return the names of the runbooks that run."""
        with self.store.reading() as tx:
            return tuple(row.name for row in active_runbooks(tx))

    def workers(self) -> list[str]:
        """Return the workers that the runbooks name; all of them work in the same tenant."""
        with self.store.reading() as tx:
            runbooks = [parse_runbook(row.yaml_content) for row in active_runbooks(tx)]
        return sorted({WORKER, *(step.worker_id for runbook in runbooks for step in runbook.every_step())})

    def worker(self, name: str, tenant_url: str, masking: Masking) -> Runner:
        """Put a worker together that works in the simulated tenant, whatever else the environment names."""
        ours = {
            "simulated_tenant_url": tenant_url,
            # It stops with the others, not because it is idle for a while.
            "idle_timeout_seconds": 0,
            "shutdown_grace_seconds": _GRACE_SECONDS,
        }
        settings = load_settings(WorkerSettings, self.environ).model_copy(update=ours)
        masking.guard(logging.getLogger("matoolkit"))
        registry, broken = functions_of_worker(settings)
        for file in broken:
            log.error("%s cannot be used: %s", file.path, file.why)
        return build_worker(self.messaging.bus, settings, name, registry, masking, self.environ, self.clock)

    def api(self, place: socket.socket) -> Part:
        """Return what serves the admin API and the pages."""
        # Tokens and sessions are good until a time of the clock, not of a calendar that runs faster.
        sign_in = sign_in_for(self.settings, HOST, SystemClock())
        way = way_to_pages(self.settings, sign_in, SystemClock(), self.environ, KEY)
        services = services_of(self.store, self.messaging.publisher, self.environ, self.clock, sign_in)
        return serving(replace(services, open_source=self.sources.open), way, self.settings, place)

    def run(self, parts: Mapping[str, Part], stop: threading.Event) -> None:
        """Run these parts beside scheduler and orchestrator."""
        built = build_scheduler(
            self.settings, self.store, self.messaging.publisher, self.environ, self.clock, stop=stop
        )
        scheduler = replace(built, open_source=self.sources.open)
        loop = SchedulerLoop(scheduler, self.settings.sweep_seconds, self.speed)
        # "checks" are the scheduler's sweeps: the orchestrator beside it has a part "sweeps".
        ours = {"ticks": loop.tick_until, "checks": loop.sweep_until}
        others = orchestrator_parts(self.settings, self.store, self.messaging)
        self.messaging.bus.start()
        try:
            run_parts({**ours, **others, **parts}, stop)
        finally:
            self.messaging.bus.stop()
            scheduler.lease.let_go()


def _place(port: int | None) -> socket.socket:
    return listening_nearby(HOST, API_PORT) if port is None else listening(HOST, port)


def _tenant_server(tenant: Tenant) -> TenantServer:
    try:
        return TenantServer(tenant, TENANT_PORT)
    except OSError:
        # Only this process and people have to find it, and people are told where it is.
        return TenantServer(tenant)


def _with_source(environ: Mapping[str, str]) -> dict[str, str]:
    """Add where the demo's people are, and that lists are in this folder, unless the environment says otherwise."""
    files = variable_names(Settings)["files"]
    known = {SOURCE_VARIABLE: f"sqlite:///{SOURCE}", files: "."}
    return {**environ, **{name: environ.get(name) or value for name, value in known.items()}}


def _address(store: Store) -> str:
    url = store.url
    return url.set(drivername=url.get_backend_name()).render_as_string(hide_password=True)
