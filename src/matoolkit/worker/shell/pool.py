"""Sessions that wait for the next job: signed in once, used by one thread at a time, replaced when they die."""

import base64
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from matoolkit.clock import Clock
from matoolkit.clouds import PUBLIC, Cloud
from matoolkit.worker.clients.failures import SignInFailed
from matoolkit.worker.failures import FunctionFailed, Throttled
from matoolkit.worker.shell.session import Session, SessionEnded

# A certificate that was renewed is used after this long at the latest.
_LONGEST_LIFE_SECONDS = 3600
_JOB_SECONDS = 3600.0
_SIGN_IN_SECONDS = 180.0
SESSION_ENDED = "SessionEnded"


class Connection(StrEnum):
    """What a session can be connected to."""

    GRAPH = "Graph"
    EXCHANGE = "Exchange"


@dataclass(frozen=True, slots=True)
class ShellSignIn:
    """As whom sessions sign in, and where; the certificate is read for each sign-in."""

    tenant_id: str
    app_id: str
    organization: str
    certificate: Callable[[], bytes]
    cloud: Cloud = PUBLIC

    def environment(self, connection: Connection) -> str:
        """Return the name by which the cmdlet that connects knows the cloud."""
        is_graph = connection is Connection.GRAPH
        return self.cloud.graph_environment if is_graph else self.cloud.exchange_environment


@dataclass(slots=True)
class _Member:
    session: Session
    began: float
    connections: set[Connection] = field(default_factory=set)


class Shell:
    """Runs scripts and cmdlets in sessions. Every thread may use it; a session serves one thread at a time."""

    def __init__(self, program: str, sign_in: ShellSignIn, clock: Clock, job_seconds: float = _JOB_SECONDS) -> None:
        self._program = program
        self._sign_in = sign_in
        self._clock = clock
        self._job_seconds = job_seconds
        self._idle: list[_Member] = []
        self._lock = threading.Lock()

    def run_script(
        self, path: Path, arguments: Mapping[str, Any], connections: Collection[Connection], job: str = "{}"
    ) -> Any:
        """Run a script with its parameters in a session that is connected, and return what it puts out."""
        request = {"script": str(path), "arguments": dict(arguments), "job": job}
        return self._run(path.stem, request, connections)

    def run_cmdlet(self, name: str, arguments: Mapping[str, Any], password: str | None = None) -> Any:
        """Run a cmdlet of Exchange; a password becomes its parameter `Password`, as a SecureString."""
        secret = {} if password is None else {"password": password}
        return self._run(name, {"cmdlet": name, "arguments": dict(arguments), **secret}, (Connection.EXCHANGE,))

    def close(self) -> None:
        """End all sessions that wait."""
        with self._lock:
            idle, self._idle = self._idle, []
        for member in idle:
            member.session.close()

    def _run(self, name: str, request: Mapping[str, Any], connections: Collection[Connection]) -> Any:
        member = self._taken(name)
        try:
            self._connect(member, connections)
            answer = member.session.ask(request, self._job_seconds)
        except SessionEnded as ended:
            member.session.close()
            message = f"{name} did not end: its PowerShell session did, and what it had begun may be done ({ended})"
            raise FunctionFailed(message, SESSION_ENDED) from None
        except BaseException:
            member.session.close()
            raise
        with self._lock:
            self._idle.append(member)
        return _result(name, answer)

    def _taken(self, name: str) -> _Member:
        """Take a session that waits and is fit, or begin one."""
        now = self._clock.monotonic()
        while True:
            with self._lock:
                member = self._idle.pop() if self._idle else None
            if member is None:
                break
            if member.session.is_alive and now - member.began < _LONGEST_LIFE_SECONDS:
                return member
            member.session.close()
        try:
            return _Member(Session(self._program), now)
        except OSError as error:
            raise FunctionFailed(f"{name} could not be started: {error.strerror}", "ScriptFailed") from None

    def _connect(self, member: _Member, connections: Collection[Connection]) -> None:
        for connection in connections:
            if connection in member.connections:
                continue
            asked = {
                "connect": connection,
                "tenantId": self._sign_in.tenant_id,
                "appId": self._sign_in.app_id,
                "organization": self._sign_in.organization,
                "environment": self._sign_in.environment(connection),
                "certificate": base64.b64encode(self._sign_in.certificate()).decode(),
            }
            try:
                answer = member.session.ask(asked, _SIGN_IN_SECONDS)
            except SessionEnded as ended:
                raise SignInFailed(f"PowerShell could not be connected to {connection}: {ended}") from None
            if "error" in answer:
                raise SignInFailed(f"PowerShell could not be connected to {connection}: {_told(answer)}")
            member.connections.add(connection)


def _result(name: str, answer: Mapping[str, Any]) -> Any:
    if "error" not in answer:
        return answer.get("result")
    said = f"{name}: {_told(answer)}"
    if answer.get("throttled"):
        raise Throttled(said)
    raise FunctionFailed(said, str(answer.get("type") or "ScriptFailed"))


def _told(answer: Mapping[str, Any]) -> str:
    return str(answer.get("error") or "no reason given").strip()
