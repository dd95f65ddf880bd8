"""The moves of a phase of a batch."""

from matoolkit.domain.moves import Move, Value
from matoolkit.domain.states import ENDED_PHASES, OPEN_PHASES, PhaseStatus

_PENDING = frozenset({PhaseStatus.PENDING})
_DISPATCHED = frozenset({PhaseStatus.DISPATCHED})
_ENDED = {"completed_at": Value.NOW}

DISPATCH = Move(
    "dispatch",
    "Its time has come, or a person advanced its batch to it.",
    _PENDING,
    PhaseStatus.DISPATCHED,
    {"dispatched_at": Value.NOW, "dispatch_count": Value.ONE_MORE, "expanded_at": None},
)
SKIP = Move("skip", "Its time has come and no member is there for it.", _PENDING, PhaseStatus.SKIPPED, _ENDED)
COMPLETE = Move(
    "complete", "All its steps have ended, and a member went through it.", _DISPATCHED, PhaseStatus.COMPLETED, _ENDED
)
FAIL = Move("fail", "All its steps have ended, and no member went through it.", _DISPATCHED, PhaseStatus.FAILED, _ENDED)
REOPEN = Move(
    "reopen",
    "A late joiner or a person's retry has steps in it. It counts as handled that it is due.",
    ENDED_PHASES - {PhaseStatus.SUPERSEDED, PhaseStatus.CANCELLED},
    PhaseStatus.DISPATCHED,
    {"completed_at": None, "expanded_at": Value.KEPT_OR_NOW},
)
SUPERSEDE = Move("supersede", "A new version takes its place.", OPEN_PHASES, PhaseStatus.SUPERSEDED, _ENDED)
CANCEL = Move("cancel", "Its batch was cancelled.", OPEN_PHASES, PhaseStatus.CANCELLED, _ENDED)
EXPAND = Move("expand", "All members have their steps of it.", _DISPATCHED, None, {"expanded_at": Value.NOW})
RESCHEDULE = Move("reschedule", "Its batch has another start time.", _PENDING, None, {})

MOVES = (DISPATCH, SKIP, COMPLETE, FAIL, REOPEN, SUPERSEDE, CANCEL, EXPAND, RESCHEDULE)
