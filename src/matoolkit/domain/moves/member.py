"""The moves of a member in its batch."""

from collections.abc import Mapping
from types import MappingProxyType

from matoolkit.domain.moves import Guard, Move, Value
from matoolkit.domain.states import MemberStatus

_ANY = frozenset(MemberStatus)
_ACTIVE = frozenset({MemberStatus.ACTIVE})
_REMOVED = frozenset({MemberStatus.REMOVED})
_FAILED = frozenset({MemberStatus.FAILED})

_NEW_EPOCH: Mapping[str, object] = MappingProxyType(
    {
        "epoch": Value.ONE_MORE,
        "added_at": Value.NOW,
        **dict.fromkeys(("caught_up_at", "left_source_at", "removed_at", "removed_by", "remove_reason", "failed_at")),
        **dict.fromkeys(("add_dispatched_at", "remove_dispatched_at", "seen_off_at", "undone_at", "undo_version")),
    }
)
_WITHOUT_OUTPUTS: Mapping[str, object] = MappingProxyType({"worker_data_json": "{}"})
_FROM_THE_FIRST_PHASE: Mapping[str, object] = MappingProxyType({"first_phase_version": None, "first_phase_place": None})
_LEAVES: Mapping[str, object] = MappingProxyType(
    # Until the orchestrator has seen it off its batch cannot end. Both times of an earlier stay are cleared, also for a
    # process of an earlier version that still runs: it knows only `caught_up_at`, and does not clear the other.
    {"removed_at": Value.NOW, **dict.fromkeys(("remove_dispatched_at", "seen_off_at", "caught_up_at"))}
)

REMOVE = Move(
    "remove",
    "It left the source, moved to another batch, or a person took it out.",
    _ACTIVE,
    MemberStatus.REMOVED,
    _LEAVES,
)
RETURN = Move(
    "return",
    "The source has it again: it begins again in a new epoch.",
    _REMOVED,
    MemberStatus.ACTIVE,
    {**_NEW_EPOCH, **_FROM_THE_FIRST_PHASE},
    (Guard.NOT_UNDONE,),
)
RETURN_UNDONE = Move(
    "return undone",
    "A person lets it in again after it was undone: it begins afresh in a new epoch, without its outputs.",
    _REMOVED,
    MemberStatus.ACTIVE,
    {**_NEW_EPOCH, **_FROM_THE_FIRST_PHASE, **_WITHOUT_OUTPUTS},
    (Guard.UNDONE,),
)
UNDO = Move(
    "undo",
    "A person undoes it, in a batch of any status.",
    _ACTIVE | _FAILED,
    MemberStatus.REMOVED,
    {**_LEAVES, "undone_at": Value.NOW},
    (Guard.SAME_EPOCH,),
)
UNDO_EXCLUDED = Move(
    "undo excluded",
    "A person undoes what it had done before it was excluded.",
    _REMOVED,
    None,
    {**_LEAVES, "undone_at": Value.NOW},
    (Guard.SAME_EPOCH, Guard.EXCLUDED),
)
FAIL = Move(
    "fail",
    "One of its steps has failed for good.",
    _ACTIVE,
    MemberStatus.FAILED,
    {"failed_at": Value.NOW},
    (Guard.SAME_EPOCH,),
)
REACTIVATE = Move(
    "reactivate",
    "A person lets it go on from where it failed.",
    _FAILED,
    MemberStatus.ACTIVE,
    {"failed_at": None, "caught_up_at": None},
)
RESTART = Move(
    "restart",
    "A person lets it begin again in a new epoch: what it did belongs to an old version.",
    _FAILED,
    MemberStatus.ACTIVE,
    _NEW_EPOCH,
)
RESTART_UNDONE = Move(
    "restart undone",
    "A person lets it begin again in a new epoch without its outputs: what it did was undone.",
    _FAILED,
    MemberStatus.ACTIVE,
    {**_NEW_EPOCH, **_WITHOUT_OUTPUTS},
)
REFRESH = Move("refresh", "The source has other data for it.", _ACTIVE, None, {"refreshed_at": Value.NOW})
FOLLOW_START = Move(
    "follow a new start", "Its batch was rescheduled: that is the time the source gives it.", _ACTIVE, None, {}
)
LEAVE_SOURCE = Move(
    "leave the source",
    "The source no longer returns it after T.",
    _ACTIVE,
    None,
    {"left_source_at": Value.NOW},
    (Guard.IN_SOURCE,),
)
REENTER_SOURCE = Move(
    "reenter the source",
    "The source returns it again after T.",
    _ANY,
    None,
    {"left_source_at": None},
    (Guard.GONE_FROM_SOURCE,),
)
ANNOUNCE = Move("announce", "The orchestrator is told that it joined.", _ACTIVE, None, {"add_dispatched_at": Value.NOW})
ANNOUNCE_REMOVAL = Move(
    "announce its removal",
    "The orchestrator is told that it left.",
    _REMOVED,
    None,
    {"remove_dispatched_at": Value.NOW},
)
CATCH_UP = Move(
    "catch up",
    "It has the steps of all phases that have begun.",
    _ACTIVE,
    None,
    {"caught_up_at": Value.NOW},
    (Guard.SAME_EPOCH, Guard.NOT_CAUGHT_UP),
)
SEE_OFF = Move(
    "see off",
    "Its open steps are cancelled after it left, and what is to run for it is created.",
    _REMOVED,
    None,
    {"seen_off_at": Value.NOW},
    (Guard.SAME_EPOCH, Guard.NOT_SEEN_OFF),
)
KEEP_OUTPUTS = Move("keep outputs", "One of its steps has put something out.", _ANY, None, {}, (Guard.SAME_EPOCH,))

MOVES = (
    REMOVE,
    RETURN,
    RETURN_UNDONE,
    UNDO,
    UNDO_EXCLUDED,
    FAIL,
    REACTIVATE,
    RESTART,
    RESTART_UNDONE,
    REFRESH,
    FOLLOW_START,
    LEAVE_SOURCE,
    REENTER_SOURCE,
    ANNOUNCE,
    ANNOUNCE_REMOVAL,
    CATCH_UP,
    SEE_OFF,
    KEEP_OUTPUTS,
)
