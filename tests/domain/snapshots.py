"""Snapshots of a source and batches, written in a line, and what was decided about them, told in sentences."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from matoolkit.domain.changes import BatchChanges, Changes, Join, Return
from matoolkit.domain.holds import HoldKind, StandingHold, late_key, removal_key, repeat_key, reschedule_key
from matoolkit.domain.rows import Candidate, Reading
from matoolkit.domain.snapshot import Before, KnownMember, Snapshot, UnfinishedBatch
from matoolkit.domain.states import ABSENT, EXCLUDED, MOVED, MemberStatus
from matoolkit.runbook.values import Allowance

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)
TICK = timedelta(minutes=5)
SOON = NOW + TICK
JUST_NOW = NOW - TICK
PAST = NOW - timedelta(hours=1)
LONG_PAST = NOW - timedelta(days=200)
T1, T2, T3, T4 = (NOW + timedelta(days=days) for days in (10, 17, 24, 31))

NEVER = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)  # as some sources write "not yet"

_NAMES = {
    NEVER: "NEVER",
    LONG_PAST: "LONG_PAST",
    PAST: "PAST",
    JUST_NOW: "JUST_NOW",
    NOW: "NOW",
    SOON: "SOON",
    T1: "T1",
    T2: "T2",
    T3: "T3",
    T4: "T4",
}
_ROW, _OLD_ROW = b"now", b"before"
_LEFT = {
    "-": (NOW - timedelta(days=2), ABSENT),
    "<": (PAST, ABSENT),
    ">": (PAST, MOVED),
    "=": (PAST, EXCLUDED),
    "^": (PAST, "undone by a person: why", PAST),
}


@dataclass(frozen=True)
class Held:
    """Why a batch is held: the keys that would leave and those that would move, or a new start."""

    gone: str = ""
    moving: str = ""
    start: datetime | None = None
    kind: HoldKind = HoldKind.REMOVALS
    approved: bool = False


@dataclass(frozen=True)
class Batch:
    """A batch and its members: `ann` is active, `ann-` was removed by the source two days ago and `ann<` an hour ago,
    `ann>` moved away, `ann=` was excluded and `ann^` was undone an hour ago, `ann!` failed, `ann?` is known to have
    left the source, and the row of `ann~` has changed since."""

    id: int
    start: datetime | None
    members: str = ""
    held: Held | None = None
    reopened: bool = False
    pending: tuple[datetime, ...] = ()
    cut_over: bool = False
    approved_at: datetime | None = None


@dataclass(frozen=True)
class Given:
    """What a tick sees: who has which time, whose row is set aside, and the batches.

    Also who is done, has failed or was undone elsewhere, with the time that it had there, whom a person lets in, and
    whom a person keeps out.
    """

    source: Mapping[datetime | None, str] = field(default_factory=dict)
    batches: tuple[Batch, ...] = ()
    set_aside: str = ""
    ended: tuple[datetime, ...] = ()
    limit: Allowance | None = None
    now: datetime = NOW
    done: Mapping[str, datetime] = field(default_factory=dict)
    failed: Mapping[str, datetime] = field(default_factory=dict)
    undone: Mapping[str, datetime] = field(default_factory=dict)
    included: Mapping[str, datetime] = field(default_factory=dict)
    excluded: str = ""
    late_joiners: bool = False
    day_ends: Mapping[datetime, datetime] = field(default_factory=dict)

    def snapshot(self) -> Snapshot:
        members = self.members()
        ids = {(member.batch_id, member.member_key_fold): member.id for member in members}
        candidates = {
            key: Candidate(key, time, _ROW, None) for time, keys in self.source.items() for key in keys.split()
        }
        aside = frozenset(self.set_aside.split())
        return Snapshot(
            now=self.now,
            interval=TICK,
            reading=Reading(len(candidates), candidates, aside, {}, (), day_ends=self.day_ends),
            batches=[_in_flight(batch, ids) for batch in self.batches],
            members=members,
            ended_times=self.ended,
            limit=self.limit,
            before={
                **{key: Before(frozenset({time}), is_done=False) for key, time in self.failed.items()},
                **{key: Before(frozenset({time}), is_done=True) for key, time in self.done.items()},
                **{key: Before(frozenset({time}), is_done=False, was_undone=True) for key, time in self.undone.items()},
            },
            included=self.included,
            excluded=frozenset(self.excluded.split()),
            takes_late_joiners=self.late_joiners,
        )

    def members(self) -> list[KnownMember]:
        written = [(batch.id, word) for batch in self.batches for word in batch.members.split()]
        return [_member(number, batch_id, word) for number, (batch_id, word) in enumerate(written, 1)]


def _member(number: int, batch_id: int, word: str) -> KnownMember:
    sign = word[-1] if word[-1] in "-<>=^!?~" else ""
    status = MemberStatus.REMOVED if sign and sign in _LEFT else MemberStatus.ACTIVE
    return KnownMember(
        number,
        batch_id,
        word.removesuffix(sign),
        MemberStatus.FAILED if sign == "!" else status,
        (_OLD_ROW if sign == "~" else _ROW).hex(),
        PAST if sign == "?" else None,
        *_LEFT.get(sign, (None, None)),
    )


def _in_flight(batch: Batch, ids: Mapping[tuple[int, str], int]) -> UnfinishedBatch:
    hold = _standing(batch.held, batch, ids) if batch.held else None
    return UnfinishedBatch(
        batch.id, batch.start, batch.reopened, hold, batch.pending, batch.cut_over, batch.approved_at
    )


def _standing(held: Held, batch: Batch, ids: Mapping[tuple[int, str], int]) -> StandingHold:
    if held.kind is HoldKind.LATE and batch.start:
        return StandingHold(held.kind, late_key(batch.start), held.approved)
    if held.kind is HoldKind.REPEAT:
        return StandingHold(held.kind, repeat_key(held.gone.split()), held.approved)
    if held.start is not None:
        return StandingHold(HoldKind.RESCHEDULE, reschedule_key(held.start), held.approved)
    gone, moving = ([ids[batch.id, key] for key in keys.split()] for keys in (held.gone, held.moving))
    return StandingHold(held.kind, removal_key(gone, moving), held.approved)


def story(changes: Changes, given: Given) -> set[str]:
    """Tell what changes, a sentence each."""
    names = {member.id: member.member_key_fold for member in given.members()}
    told = {f"batch {batch} moves to {_NAMES[start]}" for batch, start in changes.reschedules.items()}
    told |= {f"batch {hold.batch_id} is held: {hold.kind}" for hold in changes.holds}
    told |= {f"batch {batch} is released" for batch in changes.releases}
    told |= {f"batch {batch} begins" for batch in changes.beginnings}
    told |= {f"batch {batch} is cancelled" for batch in changes.emptied}
    told |= {f"the new batch at {_NAMES[start]} is held: {hold.kind}" for start, hold in changes.new_holds.items()}
    for batch, members in changes.approved_removals.items():
        told |= {f"{names[member]} leaves {batch}, as approved" for member in members}
    for batch, some in changes.batches.items():
        told |= _of_batch(batch, some, names)
    for start, joins in changes.new.items():
        told |= {_coming(join, f"joins a new batch at {_NAMES[start]}") for join in joins}
    for remark in changes.remarks.all():
        told |= {f"{key}: {remark.seen.name.lower()}" for key in remark.samples}
    if changes.ignored:
        told.add(f"ignored: {changes.ignored}")
    return told


def _of_batch(batch: int, some: BatchChanges, names: Mapping[int, str]) -> set[str]:
    told = {_coming(join, f"joins {batch}") for join in some.joins}
    told |= {_coming(back, f"returns to {batch}") for back in some.returns}
    told |= {f"{names[member]} leaves {batch}" for member in some.removals}
    told |= {f"{member.member_key_fold} leaves {batch} and waits" for member in some.movers}
    told |= {f"{names[member]} leaves {batch}, which has not begun" for member in some.dropouts}
    told |= {f"{names[member]} left the source" for member in some.left_source}
    told |= {f"{names[member]} is back in the source" for member in some.back_in_source}
    return told | {f"{refresh.key} is refreshed" for refresh in some.refreshes}


def _coming(someone: Join | Return, what: str) -> str:
    afresh = " afresh" if isinstance(someone, Return) and someone.is_undone else ""
    return f"{someone.key} {what}{afresh}" + (f" from {someone.leaves.batch_id}" if someone.leaves else "")
