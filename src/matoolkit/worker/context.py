"""What a function is given besides its parameters."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from matoolkit.clock import Clock
from matoolkit.worker.shell import Shell


class Secrets(Protocol):
    """Secrets of the worker (rule W8). They leave it only in the call for which they were fetched."""

    def get(self, name: str) -> str:
        """Return a secret; its value is masked wherever it turns up from now on."""

    def conceal(self, value: str) -> None:
        """Mask a value wherever it turns up until the job ends, such as a password that was made up."""


@dataclass(frozen=True, slots=True)
class Job:
    """Which job a function is called for, so that it can be safe to repeat: a step keeps its `work` over all attempts.

    Init has neither phase nor member, a rollback has no phase, and a job of another orchestrator may lack all but its
    id. After the deadline the job counts as lost, and is tried again if its step has retries.
    """

    id: str
    batch_id: int
    attempt: int = 1
    work: str = ""
    runbook: str | None = None
    phase: str | None = None
    step: str | None = None
    member_key: str | None = None
    deadline: datetime | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """The tenant's clients and what else a function may use; one for all threads, but with the `job` of each call.

    `shell` is PowerShell that is signed in; there is none without a real tenant, or where PowerShell is not installed.
    """

    graph: Any
    exchange: Any
    clock: Clock
    tenant_id: str
    secrets: Secrets
    shell: Shell | None = None
    alert_sender: str | None = None
    alert_recipients: tuple[str, ...] = ()
    job: Job | None = None
