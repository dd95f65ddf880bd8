"""Says what members, inits and phases wait for: it asks what decides, and tells people more of it (X1 and X2)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeAlias

from matoolkit.domain.doors import Door, PhaseDoor
from matoolkit.domain.progress import Compensate, Situation, Wait, first_step, next_of
from matoolkit.domain.states import OPEN_STEPS, UNFINISHED_BATCHES, MemberStatus, StepStatus
from matoolkit.domain.why import EndedBy, Why, WhyKind
from matoolkit.domain.windows import why_shut
from matoolkit.records import record

# Work by whether it undoes something, and by its number.
WorkKey: TypeAlias = tuple[bool, int]
# What keeps a phase only at its time says nothing about one that is yet to come.
_PASSING = frozenset({WhyKind.WINDOW, WhyKind.PILOT, WhyKind.AT_ONCE})


@record
class WorkTold:
    """What people are told of work that is open: what it is, who does it, and how far it is."""

    what: str
    worker_id: str
    status: StepStatus
    attempt: int
    dispatched_at: datetime | None
    lost_at: datetime | None
    poll_count: int
    poll_started_at: datetime | None
    poll_timeout_sec: int | None
    error: str | None
    phase: PhaseDoor | None = None


@record
class Ready:
    """Nothing keeps this work: it is sent as soon as the message is handled that says so."""

    key: WorkKey


@record
class Idle:
    """An active member has nothing open; what its batch waits for says what it waits for."""


Found: TypeAlias = Sequence[Why] | Ready | Idle


def what_keeps(situation: Situation, told: Mapping[WorkKey, WorkTold]) -> Found:
    """Say what keeps a member from going on: what decides about it is asked, then the send door (rule X1)."""
    decided = next_of(situation)
    if isinstance(decided, Wait):
        if not situation.steps and not situation.compensations and _may_get_more(situation):
            return Idle()
        told_anew = [tell(why, told) for why in decided.whys]
        behind = _behind(situation, decided.whys, told)
        is_begun = any(why.work_id is not None for why in decided.whys)
        return without_repeats([*behind, *told_anew] if is_begun else [*told_anew, *behind])
    key = (isinstance(decided, Compensate), decided.id)
    return at_send_door(situation, told[key]) or Ready(key)


def at_send_door(situation: Situation, work: WorkTold, *, has_place: bool | None = None) -> list[Why]:
    """Say which gates keep a job from leaving; the member of what was sent before has a place (rule C5)."""
    if has_place is None:
        has_place = work.phase is not None and work.phase.id in situation.places
    wanting = replace(situation.work, worker_id=work.worker_id, phase=work.phase, has_place=has_place)
    return situation.gates.at(Door.SEND, wanting)


def tell(why: Why, told: Mapping[WorkKey, WorkTold]) -> Why:
    """Tell more of work that is under way: where it is, since when, until when, and what came of it so far."""
    work = None if why.work_id is None else told.get((why.undoes, why.work_id))
    if work is None:
        return why
    match why.kind:
        case WhyKind.JOB_OUT:
            ended = "" if work.status in OPEN_STEPS else ", although the step was cancelled"
            sentence = f"the job of {work.what} is out at {work.worker_id}{ended}"
            return replace(why, sentence=sentence, since=work.dispatched_at)
        case WhyKind.POLL:
            asked = f"asked {work.poll_count} times so far" if work.poll_count else None
            sentence = f"{work.what} is not done; {work.worker_id} is asked again"
            return replace(why, sentence=sentence, since=work.poll_started_at, until=_deadline(work), detail=asked)
        case WhyKind.RETRY:
            failed = f"attempt {work.attempt}: {work.error or 'no error was kept'}" if work.attempt else None
            return replace(why, sentence=f"{work.what} did not succeed, and is tried again", detail=failed)
    return why


def ahead_of(phase: PhaseDoor, due_at: datetime, shut: Iterable[Why]) -> list[Why]:
    """Say what a phase that is not due waits for: its time, its window if that is shut then, and gates that may be."""
    window = why_shut(phase.hours, due_at) if phase.hours is not None else None
    lasting = [why for why in shut if why.kind not in _PASSING and (why.until is None or why.until > due_at)]
    not_due = Why(WhyKind.NOT_DUE, f"{phase.rules.name} is not due", until=due_at, ended_by=EndedBy.TIME)
    return [not_due, *([window] if window is not None else []), *lasting]


def without_repeats(whys: Iterable[Why]) -> list[Why]:
    """Leave out what was said before."""
    found: dict[tuple[object, ...], Why] = {}
    for why in whys:
        found.setdefault((why.kind, why.sentence, why.gate_id), why)
    return list(found.values())


def _behind(situation: Situation, whys: Iterable[Why], told: Mapping[WorkKey, WorkTold]) -> list[Why]:
    """Say which gates keep the jobs for which a member waits: polls, retries, and the first of a phase (rule G6)."""
    again = [(why.undoes, why.work_id or 0) for why in whys if why.kind in (WhyKind.POLL, WhyKind.RETRY)]
    found = [shut for key in again if key in told for shut in at_send_door(situation, told[key], has_place=True)]
    if all(why.work_id is None and why.kind is not WhyKind.ENDED for why in whys):
        found += at_send_door(situation, told[False, first_step(situation).id])
    return found


def _may_get_more(situation: Situation) -> bool:
    return situation.member is MemberStatus.ACTIVE and situation.batch in UNFINISHED_BATCHES


def _deadline(work: WorkTold) -> datetime | None:
    if work.poll_started_at is None or work.poll_timeout_sec is None:
        return None
    return work.poll_started_at + timedelta(seconds=work.poll_timeout_sec)
