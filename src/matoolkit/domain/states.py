"""The states of everything that has one (rule D1).

The CHECK constraints of the database are made from these enums, so a status that is not listed here
cannot be stored.
"""

from enum import StrEnum


class BatchStatus(StrEnum):
    """Where a batch is in its life."""

    DETECTED = "detected"
    INIT_DISPATCHED = "init_dispatched"
    ACTIVE = "active"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class MemberStatus(StrEnum):
    """Whether a member still takes part in its batch."""

    ACTIVE = "active"
    REMOVED = "removed"
    FAILED = "failed"


class MemberState(StrEnum):
    """What people see of a member: derived from its status, its batch and its work, and stored nowhere (rule U1)."""

    WAITING = "waiting"
    UNDER_WAY = "under_way"
    DONE = "done"
    FAILED = "failed"
    UNDOING = "undoing"
    UNDONE = "undone"
    LEFT = "left"
    STOPPED = "stopped"


class PhaseStatus(StrEnum):
    """Where a phase of a batch is in its life."""

    PENDING = "pending"
    DISPATCHED = "dispatched"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"


class StepStatus(StrEnum):
    """Where a step is in its life; the steps of init, rollbacks and removals have the same states."""

    PENDING = "pending"
    DISPATCHED = "dispatched"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    POLLING = "polling"
    POLL_TIMEOUT = "poll_timeout"
    CANCELLED = "cancelled"


class RollbackCause(StrEnum):
    """What started a compensation."""

    STEP_FAILED = "step_failed"
    INIT_FAILED = "init_failed"
    MEMBER_REMOVED = "member_removed"


class SignOffSubject(StrEnum):
    """What people sign off."""

    HOLD = "hold"
    INIT = "init"
    PHASE = "phase"


class SignOff(StrEnum):
    """What a person says of it."""

    APPROVE = "approve"
    REJECT = "reject"


class OverdueBehavior(StrEnum):
    """What a new version does with phases that are past due in a batch in flight."""

    RERUN = "rerun"
    IGNORE = "ignore"


class DeadLetterStatus(StrEnum):
    """What was done with a dead letter."""

    OPEN = "open"
    RESENT = "resent"
    DISCARDED = "discarded"


# Why members leave. Nothing is undone for those who moved, who are excluded, or whose batch had not begun.
MOVED = "moved"
ABSENT = "the source no longer returns it"
NOT_BEGUN = "the source no longer returned it, and its batch had not begun"
EXCLUDED = "excluded by a person"
NOTHING_TO_UNDO = frozenset({MOVED, NOT_BEGUN, EXCLUDED})
# What somebody did elsewhere still stands, so it brings its outputs.
WORK_STANDS = frozenset({MOVED, EXCLUDED})

ENDED_BATCHES = frozenset({BatchStatus.COMPLETED, BatchStatus.FAILED, BatchStatus.CANCELLED})
UNFINISHED_BATCHES = frozenset(BatchStatus) - ENDED_BATCHES

OPEN_PHASES = frozenset({PhaseStatus.PENDING, PhaseStatus.DISPATCHED})
ENDED_PHASES = frozenset(PhaseStatus) - OPEN_PHASES

OPEN_STEPS = frozenset({StepStatus.PENDING, StepStatus.DISPATCHED, StepStatus.POLLING})
ENDED_STEPS = frozenset(StepStatus) - OPEN_STEPS
UNSUCCESSFUL_STEPS = ENDED_STEPS - {StepStatus.SUCCEEDED}
FAILED_STEPS = UNSUCCESSFUL_STEPS - {StepStatus.CANCELLED}
