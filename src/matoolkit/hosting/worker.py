"""A worker as a process of its own; any number of them may share one id."""

import logging
import threading
from contextlib import ExitStack

from matoolkit.hosting.process import run_parts
from matoolkit.hosting.telemetry import telemetry_of
from matoolkit.settings import Settings, WorkerSettings
from matoolkit.system import build_worker, bus_of_worker, functions_of_worker
from matoolkit.worker.health import health_served
from matoolkit.worker.masking import Masking
from matoolkit.worker.streams import guarded_streams

log = logging.getLogger(__name__)


def run_worker(
    settings: Settings, worker: WorkerSettings, worker_id: str, stop: threading.Event, health_port: int | None = None
) -> None:
    """Do jobs until told to stop or none has come for long; running ones end, the rest is given back."""
    with ExitStack() as stack:
        masking = Masking()
        masking.guard(logging.getLogger("matoolkit"))
        stack.enter_context(guarded_streams(masking))
        stack.enter_context(telemetry_of(settings, "worker", worker_id=worker_id))
        registry, broken = functions_of_worker(worker)
        for file in broken:
            log.error("%s cannot be used: %s", file.path, file.why)
        bus = stack.enter_context(bus_of_worker(settings, worker))
        runner = build_worker(bus, worker, worker_id, registry, masking)
        stack.callback(runner.close)
        log.info("worker %s has %d functions", worker_id, len(registry))
        if health_port is not None:
            stack.enter_context(health_served(runner, health_port))
        run_parts({"worker": runner.run}, stop)
