"""Taking back jobs of cancelled work that have not left yet (rule O5)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from matoolkit.domain.moves.step import Withdraw
from matoolkit.ids import Kind
from matoolkit.ports import Publisher
from matoolkit.store.moves import move_steps
from matoolkit.store.sql.transaction import Transaction


class Cancelled(Protocol):
    """Work that was cancelled, as far as its job matters."""

    @property
    def id(self) -> int:
        """Its number."""

    @property
    def job_id(self) -> str | None:
        """Its latest job."""

    @property
    def lost_at(self) -> datetime | None:
        """Set while that job is out."""


def withdraw_unsent(
    tx: Transaction, publisher: Publisher, cancelled: Sequence[Cancelled], kind: Kind = Kind.STEP
) -> list[int]:
    """Take back jobs of cancelled work that no worker has seen, and return the work that gets no answer."""
    # `lost_at` is set while a job is out; other work has nothing to take back.
    jobs = {work.job_id: work.id for work in cancelled if work.job_id is not None and work.lost_at is not None}
    withdrawn = publisher.withdraw(tx, list(jobs)) if jobs else []
    return move_steps(tx, kind, [Withdraw(jobs[job], job) for job in withdrawn])
