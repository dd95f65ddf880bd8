"""Message and job ids, derived from facts (rule M2).

The same fact gives the same id after a crash, so a message sent twice is recognised;
a new attempt is a new fact and gives a new id, so a retry is never taken for a duplicate.
"""

import re
from datetime import UTC, datetime
from enum import StrEnum

from matoolkit.records import record


class Kind(StrEnum):
    """The three tables that hold executed work."""

    STEP = "step"
    INIT = "init"
    ROLLBACK = "rollback"


class Reason(StrEnum):
    """Why a job is sent."""

    ATTEMPT = "attempt"
    RETRY = "retry"
    POLL = "poll"


@record
class JobRef:
    """The work that a job belongs to, and which attempt of it the job is."""

    kind: Kind
    execution_id: int
    attempt: int


_KINDS = {str(kind): kind for kind in Kind}
# Our numbers are not longer; the database would refuse a longer one.
_JOB_ID = re.compile(r"(step|init|rollback)-([1-9][0-9]{0,17})-(?:attempt|retry|poll)-([1-9][0-9]{0,8})", re.ASCII)


def job_id(kind: Kind, execution_id: int, reason: Reason, attempt: int) -> str:
    """Id of a job, and of the message that carries it."""
    return f"{kind!s}-{execution_id}-{reason!s}-{attempt}"  # words as they are: to format an enum takes longer


def parse_job_id(text: str) -> JobRef | None:
    """Read which work and which attempt of it a job belongs to; nothing if it is no job id of ours."""
    match = _JOB_ID.fullmatch(text)
    if match is None:
        return None
    kind, execution_id, attempt = match.groups()
    return JobRef(_KINDS[kind], int(execution_id), int(attempt))


def reason_of(job: str) -> Reason:
    """Read from the id of a job of ours why it was sent."""
    return Reason(job.split("-")[2])


def result_id(job: str) -> str:
    """Id of the message that carries a job's result."""
    return f"result-{job}"


def worker_hello_id(worker_id: str, started_at: datetime) -> str:
    """Id of the announcement that a worker makes when it starts."""
    return f"worker-hello-{worker_id}-{started_at.timestamp():.6f}"


def hello_started_at(message_id: str, worker_id: str) -> datetime | None:
    """Read from the id of an announcement when the worker started; nothing from an id of another form."""
    found = re.match(r"-(\d{1,11}\.\d{6})(?:-|$)", message_id.removeprefix(f"worker-hello-{worker_id}"))
    return datetime.fromtimestamp(float(found[1]), UTC) if found else None


def batch_init_id(batch_id: int, version: int, occurrence: int) -> str:
    """Id of the request to run a batch's init under a version, for the n-th time."""
    return f"batch-init-{batch_id}-v{version}-{occurrence}"


def phase_due_id(phase_execution_id: int, occurrence: int) -> str:
    """Id of the news that a phase is due, for the n-th time."""
    return f"phase-due-{phase_execution_id}-{occurrence}"


def member_added_id(member_id: int, epoch: int) -> str:
    """Id of the news that a member joined, once per epoch."""
    return f"member-added-{member_id}-{epoch}"


def member_removed_id(member_id: int, epoch: int) -> str:
    """Id of the news that a member left, once per epoch."""
    return f"member-removed-{member_id}-{epoch}"


def batch_wake_id(batch_id: int, occurrence: int) -> str:
    """Id of the request to look again at all who wait in a batch, for the n-th time."""
    return f"batch-wake-{batch_id}-{occurrence}"


def poll_check_id(kind: Kind, execution_id: int, attempt: int) -> str:
    """Id of the request to poll again after an attempt."""
    return f"poll-check-{kind}-{execution_id}-{attempt}"


def retry_check_id(kind: Kind, execution_id: int, attempt: int) -> str:
    """Id of the request to retry after an attempt."""
    return f"retry-check-{kind}-{execution_id}-{attempt}"


def reissued(message_id: str, times: int) -> str:
    """Id of a message that the system issues again because the first may have been lost."""
    return f"{message_id}-r{times}"


def reissued_after_init(message_id: str, init_count: int) -> str:
    """Id of a message that waited for the n-th init of its batch and is issued again when that is done."""
    return f"{message_id}-i{init_count}"


def continued(message_id: str, cursor: int) -> str:
    """Id of the rest of a message that was handled up to a member; an older `-c` ending is replaced."""
    return f"{_CURSOR.sub('', message_id)}-c{cursor}"


def cursor_of(message_id: str) -> int:
    """Return up to which member a message was handled; 0 if it has not been."""
    match = _CURSOR.search(message_id)
    return int(match[1]) if match else 0


def occurrence_of_init(message_id: str) -> int | None:
    """Return the number of the init request that an id names, if it names one."""
    match = _BATCH_INIT.match(message_id)
    return int(match[1]) if match else None


# A dead letter that a person sent again ends with `-s` (see `resent`). It still goes on from its cursor.
_CURSOR = re.compile(r"-c([0-9]+)(?:-s[0-9]+)?$")
_BATCH_INIT = re.compile(r"batch-init-[0-9]+-v[0-9]+-([0-9]+)(?:-|$)")


def asked_for(message_id: str, request: int) -> str:
    """Id of a message that a person's request causes; the request is known by its entry in the audit log."""
    return f"{message_id}-p{request}"


def resent(message_id: str, times: int) -> str:
    """Id of a dead letter that a person sends again (rule M7)."""
    return f"{message_id}-s{times}"


def resent_again(message_id: str) -> str:
    """Id of a dead letter that a person sends again, whether that happened before or not."""
    match = _RESENT.search(message_id)
    return resent(message_id[: match.start()], int(match[1]) + 1) if match else resent(message_id, 1)


_RESENT = re.compile(r"-s([0-9]+)$")
