"""The moves of executed work, the same for steps of members, of init and of rollbacks.

Each takes many at once, is guarded in its statement and returns the ids that it moved (rule M3).
An answer counts once, for the job it belongs to, and also after that job was given up while its retry waits.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Table, func

from matoolkit.domain.states import OPEN_STEPS, UNSUCCESSFUL_STEPS, StepStatus
from matoolkit.ids import Kind
from matoolkit.records import record
from matoolkit.store.dialect.types import Instant
from matoolkit.store.executions import TABLES
from matoolkit.store.sql.prepared import given
from matoolkit.store.sql.statements import change, change_each, is_any
from matoolkit.store.sql.transaction import Transaction


@record
class Dispatch:
    """A job that is about to be sent; `attempt` is one more than the row has."""

    id: int
    attempt: int
    job_id: str
    function_name: str
    params_json: str
    lost_at: datetime


@record
class Success:
    """A job that succeeded."""

    id: int
    job_id: str
    result_json: str | None
    missing_outputs_json: str | None = None


@record
class Failure:
    """A job that failed and is not tried again."""

    id: int
    job_id: str
    error_type: str | None
    error_message: str
    result_json: str | None = None


@record
class Retry:
    """A job that failed and is tried again."""

    id: int
    job_id: str
    error_type: str | None
    error_message: str
    retry_after: datetime
    retry_count: int
    throttled_since: datetime | None = None


@record
class Incomplete:
    """A job that answered that it is not done yet."""

    id: int
    job_id: str
    result_json: str | None
    poll_due_at: datetime


@record
class Impossible:
    """Work that fails before any job is sent: a variable cannot be resolved, a message would be too large."""

    id: int
    error_type: str | None
    error_message: str


@record
class LateResult:
    """The answer to a job of work that was cancelled meanwhile."""

    id: int
    job_id: str
    result_json: str | None


@record
class Withdrawal:
    """A job that was taken back before it left."""

    id: int
    job_id: str


def dispatch(tx: Transaction, kind: Kind, dispatches: Sequence[Dispatch], at: datetime) -> list[int]:
    """Send pending or polling work to its worker; each attempt can be dispatched only once."""
    table = TABLES[kind]
    values = {
        "status": StepStatus.DISPATCHED,
        "dispatched_at": at,
        "answered_at": None,
        "retry_after": None,
        "poll_due_at": None,
    }
    waiting = is_any(table.c.status, {StepStatus.PENDING, StepStatus.POLLING})
    often_alike = ("attempt", "function_name", "lost_at")
    return change_each(tx, table, dispatches, values, waiting, following=("attempt",), often_alike=often_alike)


def succeed(tx: Transaction, kind: Kind, successes: Sequence[Success], at: datetime) -> list[int]:
    """End work whose job succeeded."""
    values = _ended(StepStatus.SUCCEEDED, at) | {"error_type": None, "error_message": None}
    return _answer(tx, kind, successes, values, at, often_alike=("result_json", "missing_outputs_json"))


def fail(tx: Transaction, kind: Kind, failures: Sequence[Failure], at: datetime) -> list[int]:
    """End work whose job failed for good."""
    return _answer(tx, kind, failures, _ended(StepStatus.FAILED, at), at)


def time_out_polls(tx: Transaction, kind: Kind, failures: Sequence[Failure], at: datetime) -> list[int]:
    """End work that was still not done at its deadline; its last answer was a poll like the others (rule O6)."""
    polled = {"last_polled_at": at, "poll_count": _one_more_poll(TABLES[kind])}
    return _answer(tx, kind, failures, _ended(StepStatus.POLL_TIMEOUT, at) | polled, at)


def retry_later(tx: Transaction, kind: Kind, retries: Sequence[Retry], at: datetime) -> list[int]:
    """Let work wait for another attempt after its job failed."""
    return _answer(tx, kind, retries, {"status": StepStatus.PENDING}, at)


def poll_later(tx: Transaction, kind: Kind, polls: Sequence[Incomplete], at: datetime) -> list[int]:
    """Let work wait for another poll; the first incomplete answer starts the time that it may take."""
    table = TABLES[kind]
    values = {
        "status": StepStatus.POLLING,
        "poll_started_at": _polling_by_then(table),
        "last_polled_at": at,
        "poll_count": _one_more_poll(table),
        "retry_after": None,
        "throttled_since": None,
    }
    return _answer(tx, kind, polls, values, at)


def fail_lost(tx: Transaction, kind: Kind, failures: Sequence[Failure], at: datetime) -> list[int]:
    """End work whose job was lost for good (rule O16)."""
    return _give_up(tx, kind, failures, _ended(StepStatus.FAILED, at), at)


def retry_lost(tx: Transaction, kind: Kind, retries: Sequence[Retry], at: datetime) -> list[int]:
    """Let work wait for another attempt after its job was lost; the answer still counts meanwhile (O16)."""
    return _give_up(tx, kind, retries, {"status": StepStatus.PENDING}, at)


def fail_undispatched(tx: Transaction, kind: Kind, failures: Sequence[Impossible], at: datetime) -> list[int]:
    """End waiting work for which no job can be sent (rules R9, W8)."""
    table = TABLES[kind]
    values = _ended(StepStatus.FAILED, at)
    return change_each(tx, table, failures, values, is_any(table.c.status, {StepStatus.PENDING, StepStatus.POLLING}))


def cancel(tx: Transaction, kind: Kind, ids: Collection[int], at: datetime) -> list[int]:
    """Cancel open work; a job that is out stays in flight until its answer comes or it is lost (rule O5)."""
    table = TABLES[kind]
    return change(tx, table, ids, cancelled(at), is_any(table.c.status, OPEN_STEPS))


def note_late_results(tx: Transaction, kind: Kind, results: Sequence[LateResult], at: datetime) -> list[int]:
    """Note answers to jobs of ended work that nobody waited for; only their outputs are of use (O5, O16)."""
    table = TABLES[kind]
    ended = is_any(table.c.status, UNSUCCESSFUL_STEPS)
    values = {"answered_at": at, "lost_at": None}
    return change_each(tx, table, results, values, ended, _unanswered(table), matching=("job_id",))


def give_up_cancelled(tx: Transaction, kind: Kind, ids: Collection[int], at: datetime) -> list[int]:
    """Stop waiting for the jobs of ended work that have been out for too long."""
    table = TABLES[kind]
    ended = is_any(table.c.status, UNSUCCESSFUL_STEPS)
    return change(tx, table, ids, {"lost_at": None}, ended, _lost_by_then(table), having={"at": at})


def note_withdrawn(tx: Transaction, kind: Kind, withdrawals: Sequence[Withdrawal]) -> list[int]:
    """Note that jobs of ended work were taken back before anybody saw them: no answer is waited for (rule O5)."""
    table = TABLES[kind]
    ended = is_any(table.c.status, UNSUCCESSFUL_STEPS)
    return change_each(tx, table, withdrawals, {"lost_at": None}, ended, matching=("job_id",))


def reopen(
    tx: Transaction, kind: Kind, ids: Collection[int], ended: Collection[StepStatus] = UNSUCCESSFUL_STEPS
) -> list[int]:
    """Let failed or cancelled work begin again for a person; its parameters are resolved anew (rule R8).

    A job that is still out keeps it closed: its answer would be taken for that of the new attempt's.
    """
    table = TABLES[kind]
    values = dict.fromkeys(_FORGOTTEN) | {"status": StepStatus.PENDING, "retry_count": 0, "poll_count": 0}
    return change(tx, table, ids, values, is_any(table.c.status, ended), _not_out(table))


_FORGOTTEN = (
    "function_name",
    "params_json",
    "job_id",
    "result_json",
    "error_type",
    "error_message",
    "missing_outputs_json",
    "completed_at",
    "answered_at",
    "poll_started_at",
    "last_polled_at",
    "poll_due_at",
    "retry_after",
    "throttled_since",
)


def _ended(status: StepStatus, at: datetime) -> dict[str, Any]:
    return {
        "status": status,
        "completed_at": at,
        "retry_after": None,
        "poll_due_at": None,
        "throttled_since": None,
    }


def cancelled(at: datetime) -> dict[str, Any]:
    """Say what cancelled work has in its columns."""
    return _ended(StepStatus.CANCELLED, at)


def _answer(
    tx: Transaction,
    kind: Kind,
    answers: Sequence[Any],
    values: dict[str, Any],
    at: datetime,
    often_alike: tuple[str, ...] = (),
) -> list[int]:
    table = TABLES[kind]
    expected = is_any(table.c.status, {StepStatus.DISPATCHED, StepStatus.PENDING})
    answered = {"answered_at": at, "lost_at": None} | values
    guards = (expected, _unanswered(table))
    return change_each(
        tx, table, answers, answered, *guards, matching=("job_id",), often_alike=often_alike, having={"at": at}
    )


def _give_up(tx: Transaction, kind: Kind, given_up: Sequence[Any], values: dict[str, Any], at: datetime) -> list[int]:
    table = TABLES[kind]
    guards = (is_any(table.c.status, {StepStatus.DISPATCHED}), _lost_by_then(table))
    values = {"lost_at": None} | values
    return change_each(tx, table, given_up, values, *guards, matching=("job_id",), having={"at": at})


@cache
def _unanswered(table: Table) -> ColumnElement[bool]:
    return table.c.answered_at.is_(None)


@cache
def _not_out(table: Table) -> ColumnElement[bool]:
    return table.c.lost_at.is_(None)


@cache
def _lost_by_then(table: Table) -> ColumnElement[bool]:
    return table.c.lost_at <= given("at", Instant())


@cache
def _polling_by_then(table: Table) -> ColumnElement[datetime]:
    return func.coalesce(table.c.poll_started_at, given("at", Instant()))


@cache
def _one_more_poll(table: Table) -> ColumnElement[int]:
    return table.c.poll_count + 1
