"""A simulated tenant as a process of its own."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from matoolkit.clock import SystemClock
from matoolkit.errors import UnreadableFile
from matoolkit.hosting.process import run_parts
from matoolkit.hosting.sockets import told_if_taken
from matoolkit.worker.tenant import StateFile, Tenant, TenantServer
from matoolkit.worker.tenant.calls import Request

# In this order: groups name their members.
_PARTS = ("domains", "users", "applications", "groups", "remote-mailboxes", "lags", "faults")


def run_tenant(
    port: int, seed: Path | None, state: Path | None, announce: Callable[[str], None], stop: threading.Event
) -> None:
    """Serve a tenant until told to stop; `announce` is told the address once it answers."""
    tenant = Tenant(SystemClock(), StateFile(state) if state is not None else None)
    if seed is not None and tenant.is_new:
        try:
            fill(tenant, _read(seed))
        except ValueError as fault:
            raise UnreadableFile(str(seed), str(fault)) from None
    with told_if_taken("127.0.0.1", port):
        serving = TenantServer(tenant, port)
    with serving as server:
        announce(server.url)
        run_parts({"tenant": threading.Event.wait}, stop)


def fill(tenant: Tenant, content: dict[str, Any]) -> None:
    """Put users, groups, lags and faults into a tenant, as `/_tenant` takes them."""
    unknown = sorted(set(content) - set(_PARTS))
    if unknown:
        raise ValueError(f"it has {', '.join(unknown)}, but only {', '.join(_PARTS)} are known")
    with tenant.kept_once():
        for part in _PARTS:
            if part in content:
                answer = tenant.answer(Request("POST", f"/_tenant/{part}", body=content[part]))
                if "error" in answer.body:
                    raise ValueError(f"{part} {answer.body['error']}")


def _read(seed: Path) -> dict[str, Any]:
    try:
        content = orjson.loads(seed.read_bytes())
    except OSError as fault:
        raise UnreadableFile(str(seed), (fault.strerror or str(fault)).lower()) from fault
    except orjson.JSONDecodeError as fault:
        raise UnreadableFile(str(seed), f"it is not JSON: {fault}") from None
    if not isinstance(content, dict):
        raise UnreadableFile(str(seed), "it is not a JSON object")
    return content
