"""The moves of a batch."""

from matoolkit.domain.moves import Guard, Move, Value
from matoolkit.domain.states import UNFINISHED_BATCHES, BatchStatus

_ANY = frozenset(BatchStatus)
_ACTIVE = frozenset({BatchStatus.ACTIVE})
_ENDED = {"completed_at": Value.NOW}

REQUEST_INIT = Move(
    "request init",
    "Its init is to run, for the first time or again.",
    UNFINISHED_BATCHES,
    BatchStatus.INIT_DISPATCHED,
    {"init_dispatched_at": Value.NOW, "init_count": Value.ONE_MORE},
)
ACTIVATE = Move(
    "activate",
    "All steps of its init have succeeded, there are none, or a person passes it by.",
    frozenset({BatchStatus.DETECTED, BatchStatus.INIT_DISPATCHED}),
    BatchStatus.ACTIVE,
    {},
)
COMPLETE = Move("complete", "All its phases have ended, and one of them well.", _ACTIVE, BatchStatus.COMPLETED, _ENDED)
FAIL = Move(
    "fail",
    "Its init has failed and is undone, or all its phases have ended and none of them well.",
    frozenset({BatchStatus.INIT_DISPATCHED, BatchStatus.ACTIVE}),
    BatchStatus.FAILED,
    _ENDED,
)
CANCEL = Move(
    "cancel",
    "A person cancels it, or nobody is left in it.",
    UNFINISHED_BATCHES,
    BatchStatus.CANCELLED,
    _ENDED,
)
LOSE_ITS_LAST = Move(
    "lose its last",
    "A person undid the last member for whom it had completed; others have failed.",
    frozenset({BatchStatus.COMPLETED}),
    BatchStatus.FAILED,
    _ENDED,
)
BE_UNDONE = Move(
    "be undone",
    "A person undid the last member in it after it had ended.",
    frozenset({BatchStatus.COMPLETED, BatchStatus.FAILED}),
    BatchStatus.CANCELLED,
    _ENDED,
)
REOPEN = Move(
    "reopen",
    "A person lets failed members try again.",
    frozenset({BatchStatus.COMPLETED, BatchStatus.FAILED}),
    BatchStatus.ACTIVE,
    {"completed_at": None, "reopened_at": Value.NOW},
)
REOPEN_INIT = Move(
    "reopen init",
    "A person lets its failed init run again.",
    frozenset({BatchStatus.FAILED}),
    BatchStatus.INIT_DISPATCHED,
    # It takes the active version when it is retried (rule V2), so it is not marked as reopened.
    {"completed_at": None, "reopened_at": None},
)
RESCHEDULE = Move(
    "reschedule", "The source gives all its members one other time.", UNFINISHED_BATCHES, None, {}, (Guard.AUTOMATED,)
)
FOLLOW = Move(
    "follow",
    "It goes over to a new version of its runbook.",
    UNFINISHED_BATCHES,
    None,
    {},
    (Guard.AUTOMATED, Guard.OTHER_VERSION, Guard.NOT_REOPENED),
)
TAKE_VERSION = Move(
    "take a version",
    "A person lets it follow another version of its runbook.",
    UNFINISHED_BATCHES,
    None,
    {},
    (Guard.OTHER_VERSION,),
)
ADVANCE = Move("advance", "A person advances it to a phase.", _ACTIVE, None, {}, (Guard.MANUAL,))
HOLD = Move("hold", "It waits for a person.", UNFINISHED_BATCHES, None, {"hold_count": Value.ONE_MORE})
NOTE_REMOVALS = Move(
    "note removals",
    "Removals were made that a person approved: the removal limit counts from then on.",
    UNFINISHED_BATCHES,
    None,
    {"removals_approved_at": Value.NOW},
)

MOVES = (
    REQUEST_INIT,
    ACTIVATE,
    COMPLETE,
    FAIL,
    CANCEL,
    LOSE_ITS_LAST,
    BE_UNDONE,
    REOPEN,
    REOPEN_INIT,
    RESCHEDULE,
    FOLLOW,
    TAKE_VERSION,
    ADVANCE,
    HOLD,
    NOTE_REMOVALS,
)
