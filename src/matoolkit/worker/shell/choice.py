"""Whether the worker has PowerShell that can sign in, by its settings and what is installed."""

import shutil
from collections.abc import Callable

from matoolkit.clock import Clock
from matoolkit.errors import InvalidSettings
from matoolkit.settings import WorkerSettings
from matoolkit.worker.clients.certificates import certificate_data
from matoolkit.worker.clients.choice import cloud_of_tenant, missing_settings
from matoolkit.worker.clients.exchange import Exchange
from matoolkit.worker.shell.exchange import SecureExchange, ShellExchange
from matoolkit.worker.shell.pool import Shell, ShellSignIn


def powershell_program() -> str | None:
    """Find PowerShell 7 or newer."""
    return shutil.which("pwsh")


def open_shell(settings: WorkerSettings, secret: Callable[[str], str], clock: Clock) -> Shell | None:
    """Return PowerShell that signs in to the worker's tenant; there is none without both."""
    program = powershell_program()
    if program is None or settings.simulated_tenant_url or missing_settings(settings):
        return None
    tenant_id, name = str(settings.target_tenant_id), str(settings.cert_name)
    sign_in = ShellSignIn(
        tenant_id=tenant_id,
        app_id=str(settings.app_id),
        organization=settings.target_organization or tenant_id,
        certificate=lambda: certificate_data(secret(name)),
        cloud=cloud_of_tenant(settings),
    )
    return Shell(program, sign_in, clock)


def exchange_of(settings: WorkerSettings, exchange: Exchange, shell: Shell | None) -> Exchange:
    """Return the way to Exchange that the settings ask for."""
    if settings.create_mail_users_with != "powershell" or settings.simulated_tenant_url:
        return exchange
    if shell is None:
        problem = "CREATE_MAIL_USERS_WITH is powershell, but this worker has no PowerShell that can sign in"
        raise InvalidSettings([problem], hint="install pwsh, and set what `matoolkit worker check` asks for")
    return SecureExchange(exchange, ShellExchange(shell))
