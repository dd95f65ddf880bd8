"""Finds work that no message announces: lost and dead jobs, members that wait or left, endings (rules O16 and M7).

A sweep finds work without locking anything, then handles it in slices as if messages had come. Work that cannot be
handled does not block other work.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias, TypeVar

from matoolkit.domain.moves import Ignore
from matoolkit.domain.moves.step import StepMove
from matoolkit.domain.step import JobDead, JobLost, Problem, decide
from matoolkit.ids import JobRef, Kind, parse_job_id
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.consequences import follow_up
from matoolkit.orchestrator.joiners_and_leavers import add_members, remove_members
from matoolkit.orchestrator.moving import apply_moves
from matoolkit.store import Store
from matoolkit.store.deadletters import DeadLetterHead, open_dead_letters
from matoolkit.store.executions import Overdue, lost_jobs
from matoolkit.store.narrow_executions import batches_of_work, states_of
from matoolkit.store.narrow_members import NarrowMember, members_to_catch_up, members_to_see_off
from matoolkit.store.phases import batches_without_open_phases, phases_by_id, phases_without_open_steps
from matoolkit.store.sql.transaction import Transaction

log = logging.getLogger(__name__)

AT_ONCE = 500
# A `member-removed` that is on its way comes sooner than this; otherwise it is a dead letter, or was discarded.
_LONG_ENOUGH_TO_HEAR = timedelta(hours=1)

FoundT = TypeVar("FoundT")
OpenAgenda: TypeAlias = Callable[[Transaction, set[int]], Agenda]


@dataclass(frozen=True, slots=True)
class DeadJob:
    """A job that the bus put aside."""

    ref: JobRef
    job_id: str
    why: str


def sweep_lost_jobs(store: Store, open_agenda: OpenAgenda) -> None:
    """Give up jobs that have been out for too long; their work is tried again or fails."""
    for kind in Kind:
        last: Overdue | None = None
        while True:
            with store.reading() as tx:
                overdue = lost_jobs(tx, kind, tx.time(), after=last, limit=AT_ONCE)
            if not overdue:
                break
            last = overdue[-1]
            refs = [JobRef(kind, work.id, work.attempt) for work in overdue]
            _in_slices(store, refs, lambda tx, part: _give_up(tx, open_agenda, part))


def sweep_dead_jobs(store: Store, open_agenda: OpenAgenda) -> None:
    """Fail the work whose job the bus put aside; the dead letter stays for a person to look at."""
    after = 0
    while True:
        with store.reading() as tx:
            letters = open_dead_letters(tx, after=after, limit=AT_ONCE)
        if not letters:
            return
        after = letters[-1].id
        dead = [job for letter in letters if (job := _dead_job(letter)) is not None]
        _in_slices(store, dead, lambda tx, part: _bury(tx, open_agenda, part))


def sweep_waiting_members(store: Store, open_agenda: OpenAgenda) -> None:
    """Catch up members that wait although nothing blocks them: their message was lost (rule O10)."""
    after = 0
    while True:
        with store.reading() as tx:
            waiting = members_to_catch_up(tx, after=after, limit=AT_ONCE)
        if not waiting:
            return
        after = waiting[-1].id
        _in_slices(store, waiting, lambda tx, part: _catch_up(tx, open_agenda, part))


def sweep_leavers(store: Store, open_agenda: OpenAgenda) -> None:
    """See off members that left long ago: their message was lost or discarded (rule O16)."""
    after = 0
    while True:
        with store.reading() as tx:
            unseen = members_to_see_off(tx, tx.time() - tx.lasting(_LONG_ENOUGH_TO_HEAR), after=after, limit=AT_ONCE)
        if not unseen:
            return
        after = unseen[-1].id
        _in_slices(store, unseen, lambda tx, part: _see_off(tx, open_agenda, part))


def sweep_endings(store: Store, open_agenda: OpenAgenda) -> None:
    """End phases and batches whose parts have all ended."""
    with store.reading() as tx:
        phases = [phase.id for phase in phases_without_open_steps(tx)]
        batches = batches_without_open_phases(tx)
    _in_slices(store, phases, lambda tx, part: _end_phases(tx, open_agenda, part))
    _in_slices(store, batches, lambda tx, part: _end_batches(tx, open_agenda, part))


def _give_up(tx: Transaction, open_agenda: OpenAgenda, refs: Sequence[JobRef]) -> None:
    agenda = open_agenda(tx, _batches(tx, refs))
    for kind in Kind:
        states = states_of(tx, kind, {ref.execution_id for ref in refs if ref.kind is kind})
        overdue = [state for state in states.values() if state.lost_at is not None and state.lost_at <= agenda.at]
        lost = JobLost(agenda.at, Problem("no result came in time: the job counts as lost", "JobLost"))
        decided = [decide(state, lost) for state in overdue]
        apply_moves(agenda, kind, states, [move for move in decided if not isinstance(move, Ignore)])
    follow_up(agenda)


def _bury(tx: Transaction, open_agenda: OpenAgenda, jobs: Sequence[DeadJob]) -> None:
    agenda = open_agenda(tx, _batches(tx, [job.ref for job in jobs]))
    for kind in Kind:
        mine = {job.ref.execution_id: job for job in jobs if job.ref.kind is kind}
        states = states_of(tx, kind, set(mine))
        decided: list[StepMove | Ignore] = []
        for state in states.values():
            job = mine[state.id]
            if job.job_id == state.job_id:
                problem = Problem(f"the job became a dead letter: {job.why}", "DeadLetter")
                decided.append(decide(state, JobDead(agenda.at, job.ref.attempt, problem)))
        apply_moves(agenda, kind, states, [move for move in decided if not isinstance(move, Ignore)])
    follow_up(agenda)


def _catch_up(tx: Transaction, open_agenda: OpenAgenda, members: Sequence[NarrowMember]) -> None:
    agenda = open_agenda(tx, {member.batch_id for member in members})
    add_members(agenda, [member.id for member in members])
    follow_up(agenda)


def _see_off(tx: Transaction, open_agenda: OpenAgenda, members: Sequence[NarrowMember]) -> None:
    agenda = open_agenda(tx, {member.batch_id for member in members})
    remove_members(agenda, [member.id for member in members])
    follow_up(agenda)


def _end_phases(tx: Transaction, open_agenda: OpenAgenda, ids: Sequence[int]) -> None:
    agenda = open_agenda(tx, {phase.batch_id for phase in phases_by_id(tx, ids)})
    agenda.phases_to_end.update(ids)
    follow_up(agenda)


def _end_batches(tx: Transaction, open_agenda: OpenAgenda, ids: Sequence[int]) -> None:
    agenda = open_agenda(tx, set(ids))
    agenda.batches_to_end.update(ids)
    follow_up(agenda)


def _batches(tx: Transaction, refs: Sequence[JobRef]) -> set[int]:
    found: set[int] = set()
    for kind in Kind:
        found.update(batches_of_work(tx, kind, {ref.execution_id for ref in refs if ref.kind is kind}))
    return found


def _dead_job(letter: DeadLetterHead) -> DeadJob | None:
    ref = parse_job_id(letter.message_id)
    why = f"{letter.reason} ({letter.description})" if letter.description else letter.reason
    return None if ref is None else DeadJob(ref, letter.message_id, why)


def _in_slices(store: Store, found: Sequence[FoundT], handle: Callable[[Transaction, Sequence[FoundT]], None]) -> None:
    for first in range(0, len(found), AT_ONCE):
        _try(store, found[first : first + AT_ONCE], handle)


def _try(store: Store, part: Sequence[FoundT], handle: Callable[[Transaction, Sequence[FoundT]], None]) -> None:
    """Handle what was found in one transaction; if that fails, each alone, and skip what fails alone."""
    try:
        with store.transaction() as tx:
            handle(tx, part)
    except Exception as error:
        if getattr(error, "spares_work", False):
            raise
        if len(part) == 1:
            log.exception("a sweep skips %s", part[0])
            return
        for one in part:
            _try(store, [one], handle)
