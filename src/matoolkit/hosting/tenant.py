"""A simulated tenant as a process of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from matoolkit.clock import SystemClock
from matoolkit.errors import UnreadableFile
from matoolkit.hosting.process import stopped_by_signals
from matoolkit.worker.tenant import Tenant, TenantServer
from matoolkit.worker.tenant.calls import Request

# In this order: groups name their members.
_PARTS = ("users", "groups", "lags", "faults")


def run_tenant(port: int, seed: Path | None, announce: Callable[[str], None]) -> None:
    """Serve a tenant until a signal comes; `announce` is told the address once it answers."""
    tenant = Tenant(SystemClock())
    if seed is not None:
        fill(tenant, seed)
    with stopped_by_signals() as stop, TenantServer(tenant, port) as server:
        announce(server.url)
        stop.wait()


def fill(tenant: Tenant, seed: Path) -> None:
    """Put what a file says into a tenant: users, groups, lags and faults, as `/_tenant` takes them."""
    content = _read(seed)
    unknown = sorted(set(content) - set(_PARTS))
    if unknown:
        raise UnreadableFile(str(seed), f"it has {', '.join(unknown)}, and only {', '.join(_PARTS)} mean something")
    for part in _PARTS:
        if part in content:
            answer = tenant.answer(Request("POST", f"/_tenant/{part}", body=content[part]))
            if "error" in answer.body:
                raise UnreadableFile(str(seed), f"{part} {answer.body['error']}")


def _read(seed: Path) -> dict[str, Any]:
    try:
        content = orjson.loads(seed.read_bytes())
    except OSError as fault:
        raise UnreadableFile(str(seed), (fault.strerror or str(fault)).lower()) from fault
    except orjson.JSONDecodeError as fault:
        raise UnreadableFile(str(seed), f"it is no JSON: {fault}") from None
    if not isinstance(content, dict):
        raise UnreadableFile(str(seed), "it is no JSON object")
    return content
