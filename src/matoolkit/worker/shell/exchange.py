"""Exchange over PowerShell: the other way to run a cmdlet, for what InvokeCommand does not take."""

from collections.abc import Mapping
from typing import Any

from matoolkit.worker.clients.exchange import Exchange
from matoolkit.worker.clients.failures import ObjectMissing, ObjectTaken, Rejected, UnreadableAnswer
from matoolkit.worker.failures import FunctionFailed, Throttled
from matoolkit.worker.shell.pool import Shell

_MISSING = frozenset({"ManagementObjectNotFoundException"})
_TAKEN = frozenset({"ProxyAddressExistsException", "ADObjectAlreadyExistsException"})
# The session broke: it is not Exchange that said no.
_OWN = frozenset({"SessionEnded", "ScriptFailed"})


class ShellExchange:
    """Runs cmdlets in sessions of PowerShell. One for all threads."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def run(self, cmdlet: str, parameters: Mapping[str, Any], *, password: str | None = None) -> list[dict[str, Any]]:
        """Run a cmdlet and return the objects that it finds; a password goes as a SecureString."""
        try:
            found = self._shell.run_cmdlet(cmdlet, parameters, password)
        except Throttled:
            raise
        except FunctionFailed as failed:
            if failed.type in _OWN:
                raise
            raise _failure(failed) from None
        rows = found if isinstance(found, list) else [] if found is None else [found]
        if not all(isinstance(one, dict) for one in rows):
            raise UnreadableAnswer(f"Exchange: {cmdlet}: the answer is no list of objects")
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
    if failed.type in _MISSING:
        return ObjectMissing(message)
    return ObjectTaken(message) if failed.type in _TAKEN else Rejected(message)
