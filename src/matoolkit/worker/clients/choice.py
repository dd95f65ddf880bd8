"""Which tenant the functions work in, by the settings: a real one, a simulated one, or none."""

from collections.abc import Callable
from typing import Any, NoReturn

from matoolkit.backoff import Backoff
from matoolkit.clock import Clock
from matoolkit.clouds import CLOUDS, Cloud
from matoolkit.settings import WorkerSettings
from matoolkit.tokens import authority_of
from matoolkit.worker.clients.certificates import certificate_data
from matoolkit.worker.clients.connection import Clients, connect, connect_to_simulation
from matoolkit.worker.clients.failures import TenantFailed
from matoolkit.worker.clients.tokens import CertificateTokens, TenantTokens

_NEEDED = ("target_tenant_id", "app_id", "cert_name")


def missing_settings(settings: WorkerSettings) -> tuple[str, ...]:
    """Name the variables without which a worker has no real tenant."""
    return tuple(name.upper() for name in _NEEDED if not getattr(settings, name))


def cloud_of_tenant(settings: WorkerSettings) -> Cloud:
    """Return the cloud in which the worker's tenant is."""
    return CLOUDS[settings.target_cloud or settings.cloud]


class NoTenant:
    """Replaces the clients of a worker without tenant: every call says which settings are missing."""

    def __init__(self, missing: tuple[str, ...]) -> None:
        self._missing = missing

    def __getattr__(self, _: str) -> NoReturn:
        names = ", ".join(self._missing)
        raise TenantFailed(f"this worker has no tenant to work in: set {names}, or SIMULATED_TENANT_URL")

    def close(self) -> None:
        """There is nothing to close."""


def backoff_of(settings: WorkerSettings) -> Backoff:
    """Say how often a call is tried again, and how long to wait before each try."""
    return Backoff(settings.max_retry_count, settings.base_retry_delay_seconds, settings.max_retry_delay_seconds)


def open_clients(
    settings: WorkerSettings, secret: Callable[[str], str], clock: Clock, conceal: Callable[[str], None]
) -> Clients:
    """Return the clients of the worker's tenant; `secret` reads the certificate by its name."""
    backoff = backoff_of(settings)
    if settings.simulated_tenant_url:
        return connect_to_simulation(settings.simulated_tenant_url.rstrip("/"), clock, backoff)
    missing = missing_settings(settings)
    if missing:
        nobody: Any = NoTenant(missing)
        return Clients(nobody, nobody, nobody)
    tenant_id, app_id, name = (str(getattr(settings, needed)) for needed in _NEEDED)

    cloud = cloud_of_tenant(settings)
    # The variable that azure-identity knows is about the process's own identity, which may be in another cloud.
    authority = cloud.authority if settings.target_cloud else authority_of(cloud)

    def certificate() -> bytes:
        return certificate_data(secret(name))

    def tokens_for(scope: str) -> TenantTokens:
        return CertificateTokens(tenant_id, app_id, certificate, scope, clock, conceal, authority)

    return connect(tokens_for, settings.target_organization or tenant_id, clock, backoff, cloud=cloud)
