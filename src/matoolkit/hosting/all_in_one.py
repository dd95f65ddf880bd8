"""Scheduler, orchestrator, worker, admin API and a simulated tenant in one process: the whole system to try."""

import logging
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from matoolkit.bus.sql import SqlBus
from matoolkit.clock import Clock, SystemClock
from matoolkit.hosting.api import services_of, serving, sign_in_for
from matoolkit.hosting.demo import SOURCE_VARIABLE, begin_if_new, open_tenant
from matoolkit.hosting.folder import FOLDER, SOURCE, alone_in, forget_all
from matoolkit.hosting.orchestrator import orchestrator_parts
from matoolkit.hosting.process import Part, run_parts
from matoolkit.hosting.sockets import listening, listening_nearby, port_of
from matoolkit.hosting.story import Line, Story
from matoolkit.scheduler.loop import SchedulerLoop
from matoolkit.settings import Settings, WorkerSettings, load_settings
from matoolkit.store import Store
from matoolkit.store.upgrade import upgrade
from matoolkit.system import Messaging, build_scheduler, build_worker, functions_of_worker, open_bus, open_database
from matoolkit.worker.masking import Masking
from matoolkit.worker.runner import Runner
from matoolkit.worker.streams import guarded_streams
from matoolkit.worker.tenant import TenantServer

HOST = "127.0.0.1"
API_PORT = 8080
TENANT_PORT = 8765
WORKER = "worker-01"
# For a calendar of minutes; what the environment says comes first.
_QUICK = {"tick_seconds": 2, "sweep_seconds": 1}
# A job that takes longer is given back, and done again after the next start.
_GRACE_SECONDS = 5

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options of a start; without a port the API takes its usual one, or one nearby."""

    port: int | None = None
    is_fresh: bool = False
    has_own_database: bool = False


@dataclass(frozen=True, slots=True)
class Places:
    """What runs where, and what was there before; nothing if this is the first start."""

    api_url: str
    tenant_url: str
    database: str
    so_far: tuple[Line, ...] | None


@dataclass(frozen=True, slots=True)
class Audience:
    """Receives what runs where, and then what happens; without `tell` only the log says it."""

    welcome: Callable[[Places], None]
    tell: Callable[[Sequence[Line]], None] | None = None


def quickened(settings: Settings) -> Settings:
    """Return settings for something to look at, with everything that was set left as it is."""
    return settings.model_copy(
        update={name: value for name, value in _QUICK.items() if name not in settings.model_fields_set}
    )


def run_all(
    settings: Settings, environ: Mapping[str, str], wishes: Wishes, audience: Audience, stop: threading.Event
) -> None:
    """Run everything until told to stop; the next start goes on from there, however this one ended."""
    clock = SystemClock()
    with ExitStack() as stack:
        stack.enter_context(alone_in(FOLDER))
        place = stack.enter_context(_place(wishes.port))
        if wishes.is_fresh:
            forget_all()
        store = open_database(settings)
        stack.callback(store.close)
        upgrade(store)
        is_first = begin_if_new(store, clock.now())
        tenant = stack.enter_context(_tenant_server(clock))
        messaging = open_bus(settings, store)
        stack.callback(messaging.bus.stop)
        if isinstance(messaging.bus, SqlBus) and not wishes.has_own_database:
            messaging.bus.take_over()
        system = _System(settings, _with_source(environ), store, messaging, clock)
        story = Story(store, clock, audience.tell or (lambda _: None))
        so_far = None if is_first else tuple(story.so_far())
        audience.welcome(Places(f"http://{HOST}:{port_of(place)}", tenant.url, _address(store), so_far))
        masking = Masking()
        stack.enter_context(guarded_streams(masking))
        worker = system.worker(tenant.url, masking)
        stack.callback(worker.close)
        parts = {"worker": worker.run, "api": system.api(place)}
        if audience.tell:
            parts["story"] = story.tell_until
        system.run(parts, stop)
        story.tell()
    log.info("stopped; the next start goes on from here")


@dataclass(frozen=True, slots=True)
class _System:
    """What the parts are made from."""

    settings: Settings
    environ: Mapping[str, str]
    store: Store
    messaging: Messaging
    clock: Clock

    def worker(self, tenant_url: str, masking: Masking) -> Runner:
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
        return build_worker(self.messaging.bus, settings, WORKER, registry, masking, self.environ)

    def api(self, place: socket.socket) -> Part:
        """Return what serves the admin API."""
        sign_in = sign_in_for(self.settings, HOST, self.clock)
        return serving(services_of(self.store, self.messaging.publisher, self.environ, self.clock, sign_in), place)

    def run(self, parts: Mapping[str, Part], stop: threading.Event) -> None:
        """Run these parts beside scheduler and orchestrator."""
        scheduler = build_scheduler(self.settings, self.store, self.messaging.publisher, self.environ, stop=stop)
        loop = SchedulerLoop(scheduler, self.settings.sweep_seconds)
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


def _tenant_server(clock: Clock) -> TenantServer:
    tenant = open_tenant(clock)
    try:
        return TenantServer(tenant, TENANT_PORT)
    except OSError:
        # Only this process and people have to find it, and people are told where it is.
        return TenantServer(tenant)


def _with_source(environ: Mapping[str, str]) -> dict[str, str]:
    return {**environ, SOURCE_VARIABLE: environ.get(SOURCE_VARIABLE) or f"sqlite:///{SOURCE}"}


def _address(store: Store) -> str:
    url = store.url
    return url.set(drivername=url.get_backend_name()).render_as_string(hide_password=True)
