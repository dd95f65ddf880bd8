"""Scheduler, orchestrator and a worker that only pretends, in one process: the whole system to try."""

import logging
from collections.abc import Mapping

from matoolkit.admin.publishing import publish
from matoolkit.clock import SystemClock
from matoolkit.hosting.orchestrator import orchestrator_parts
from matoolkit.hosting.process import run_parts, stopped_by_signals
from matoolkit.scheduler.loop import SchedulerLoop
from matoolkit.settings import Settings
from matoolkit.store import Store, open_store
from matoolkit.store.upgrade import upgrade
from matoolkit.system import build_scheduler, build_worker, open_bus
from matoolkit.worker.rehearsal import rehearsal

WORKER = "worker-01"
# For a calendar of minutes; what the environment says comes first.
_QUICK = {"tick_seconds": 5, "sweep_seconds": 2, "log_format": "text"}

log = logging.getLogger(__name__)


def quickened(settings: Settings) -> Settings:
    """Return settings for something to look at, with everything that was set left as it is."""
    return settings.model_copy(
        update={name: value for name, value in _QUICK.items() if name not in settings.model_fields_set}
    )


def run_all(settings: Settings, runbook: str, environ: Mapping[str, str]) -> None:
    """Publish a runbook, switch it on, and run everything until a signal comes; the next start goes on from there."""
    store = open_store(settings.database_url.get_secret_value())
    upgrade(store)
    _publish(store, runbook)
    bus = open_bus(settings, store)
    scheduler = build_scheduler(settings, store, bus, environ)
    loop = SchedulerLoop(scheduler, settings.sweep_seconds)
    worker = build_worker(bus, WORKER, rehearsal())
    parts = {"ticks": loop.tick_until, "checks": loop.sweep_until, "worker": worker.run}
    bus.start()
    try:
        with stopped_by_signals(scheduler.lease.stop) as stop:
            run_parts({**parts, **orchestrator_parts(settings, store, bus)}, stop)
        scheduler.lease.let_go()
    finally:
        bus.stop()
        store.close()
    log.info("stopped; the next start goes on from here")


def _publish(store: Store, runbook: str) -> None:
    published = publish(store, runbook, by="matoolkit up", now=SystemClock().now(), enable=True)
    what = "published and switched on" if published.is_new else "is as it was"
    log.info("version %d %s", published.version, what, extra={"runbook": published.name})
