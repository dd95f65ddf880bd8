"""Exchange over PowerShell: the other way to run a cmdlet, for what InvokeCommand does not take."""

from collections.abc import Mapping
from typing import Any

from matoolkit.worker.clients.exchange import Exchange
from matoolkit.worker.clients.failures import (
    Forbidden,
    ObjectMissing,
    ObjectTaken,
    Rejected,
    TenantFailed,
    Unanswered,
    UnreadableAnswer,
)
from matoolkit.worker.failures import FunctionFailed, Throttled
from matoolkit.worker.shell.pool import SESSION_ENDED, Shell

_MISSING = frozenset({"ManagementObjectNotFoundException"})
_TAKEN = frozenset({"ProxyAddressExistsException", "ADObjectAlreadyExistsException"})
# A session has only the cmdlets that the application's roles allow.
_NOT_ALLOWED = "CommandNotFoundException"


class ShellExchange:
    """Runs cmdlets in sessions of PowerShell. One for all threads."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def run(self, cmdlet: str, parameters: Mapping[str, Any], *, password: str | None = None) -> list[dict[str, Any]]:
        """Run a cmdlet and return the objects that it finds; a password goes as a SecureString."""
        try:
            found = self._shell.run_cmdlet(cmdlet, parameters, password)
        except (Throttled, TenantFailed):
            raise
        except FunctionFailed as failed:
            raise _failure(failed) from None
        rows = found if isinstance(found, list) else [] if found is None else [found]
        if not all(isinstance(one, dict) for one in rows):
            raise UnreadableAnswer(f"Exchange: {cmdlet}: the answer is not a list of objects")
        return rows


class SecureExchange:
    """Runs what takes a password in PowerShell, which encrypts it on the way, and everything else as before."""

    def __init__(self, exchange: Exchange, shell: ShellExchange) -> None:
        self._exchange = exchange
        self._shell = shell

    def run(self, cmdlet: str, parameters: Mapping[str, Any], *, password: str | None = None) -> list[dict[str, Any]]:
        """Run a cmdlet and return the objects that it finds."""
        if password is not None:
            return self._shell.run(cmdlet, parameters, password=password)
        return self._exchange.run(cmdlet, parameters)


def _failure(failed: FunctionFailed) -> FunctionFailed:
    message = f"Exchange: {failed.message}"
    if failed.type == SESSION_ENDED:
        # The cmdlet may still be at work, so who called it looks before it is run again.
        return Unanswered(message, is_over=False)
    if failed.type == _NOT_ALLOWED:
        return Forbidden(message, api="Exchange")
    if failed.type in _MISSING:
        return ObjectMissing(message)
    return ObjectTaken(message) if failed.type in _TAKEN else Rejected(message)
