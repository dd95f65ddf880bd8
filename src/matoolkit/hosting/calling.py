"""One call of a function, without a batch and without a database: against a tenant, or a simulated one made for it."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import orjson

from matoolkit.bus.topology import WORKER_JOBS
from matoolkit.clock import SystemClock
from matoolkit.domain.messages import WorkerJob, WorkerResult
from matoolkit.hosting.people import People
from matoolkit.hosting.tenant import fill
from matoolkit.ports import Piece
from matoolkit.runbook.model import Step
from matoolkit.runbook.templates import Json
from matoolkit.settings import Settings, WorkerSettings
from matoolkit.system import execution_opened, read_message
from matoolkit.worker.clients.choice import missing_settings
from matoolkit.worker.masking import Masking
from matoolkit.worker.registry import Function, Registry
from matoolkit.worker.streams import guarded_streams
from matoolkit.worker.tenant import Tenant, TenantServer

WORKER = "worker-01"
# Verbs of functions that only look.
_LOOKING = ("get-", "test-")
_NO_LAGS = {"lags": {"graph": 0, "exchange": 0, "sync": 0, "move": 0}}


@dataclass(frozen=True, slots=True)
class Call:
    """A function and what it is given."""

    function: Function
    parameters: Mapping[str, Json]

    @property
    def changes(self) -> bool:
        """Whether it may change the tenant; its verb says so."""
        return not self.function.name.casefold().startswith(_LOOKING)


def is_simulated(settings: WorkerSettings) -> bool:
    """Tell whether a call meets no real tenant."""
    return bool(settings.simulated_tenant_url or missing_settings(settings))


def called(settings: WorkerSettings, registry: Registry, call: Call) -> WorkerResult:
    """Call a function once and return its result, with every secret in it masked."""
    masking = Masking()
    masking.guard(logging.getLogger("matoolkit"))
    worker_id = settings.worker_id or WORKER
    with (
        guarded_streams(masking),
        _with_tenant(settings, call) as ready,
        execution_opened(ready, worker_id, registry, masking) as execution,
    ):
        return execution.result_of(_job(worker_id, call))


def _job(worker_id: str, call: Call) -> WorkerJob:
    """Write the job as it would come over a bus, and read it as a worker does."""
    body = {
        "JobId": "call",
        "BatchId": 0,
        "WorkerId": worker_id,
        "FunctionName": call.function.name,
        "Parameters": dict(call.parameters),
        "Attempt": 1,
        "StepName": "call",
        "Deadline": SystemClock().now() + Settings().step_timeout,
    }
    job = read_message(WORKER_JOBS, "worker-job", orjson.dumps(body).decode())
    assert isinstance(job, WorkerJob)  # noqa: S101 - the line above says so
    return job


@contextmanager
def _with_tenant(settings: WorkerSettings, call: Call) -> Iterator[WorkerSettings]:
    """Make a tenant for the call if there is none; it knows those whom the parameters name."""
    if settings.simulated_tenant_url or not missing_settings(settings):
        yield settings
        return
    tenant = Tenant(SystemClock())
    fill(tenant, _NO_LAGS)
    step = Step(name="call", worker_id=WORKER, function=call.function.name, params=dict(call.parameters))
    People(tenant, [step]).meet(Piece((), [()]))
    with TenantServer(tenant) as server:
        yield settings.model_copy(update={"simulated_tenant_url": server.url})
