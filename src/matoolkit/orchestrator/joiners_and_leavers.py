"""Members that join late, come back or leave (rules O5, O9, O10, T5)."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace

from matoolkit.announcing.signoffs import use_sign_offs
from matoolkit.domain.phase import is_caught_up_with
from matoolkit.domain.states import BatchStatus, MemberStatus, PhaseStatus, StepStatus
from matoolkit.ids import Kind
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.cancelling import note_cancelled
from matoolkit.orchestrator.compensating import undo_membership
from matoolkit.orchestrator.expanding import fields_from_phase
from matoolkit.store.members import MemberAt, note_caught_up, note_seen_off
from matoolkit.store.moves import cancel
from matoolkit.store.narrow_executions import unfinished_rollbacks_of_members
from matoolkit.store.narrow_members import NarrowMember, narrow_members
from matoolkit.store.phases import PhaseRow, reopen_phases
from matoolkit.store.rollbacks import rollbacks_in_sequences
from matoolkit.store.steps import (
    NewStep,
    cancel_steps_of_members,
    cancel_steps_of_older_epochs,
    insert_steps,
    members_in_phases,
)

log = logging.getLogger(__name__)


def add_members(agenda: Agenda, member_ids: Collection[int]) -> None:
    """Give late joiners step rows for every phase that their batch has begun; a second message adds nothing."""
    joining: list[NarrowMember] = []
    for member in narrow_members(agenda.tx, member_ids):
        if (reason := _why_not_added(agenda, member)) is None:
            joining.append(member)
        else:
            about = {"batch": member.batch_id, "member": member.member_key}
            log.info("a member-added is ignored: %s", reason, extra=about)
            _look_at_init(agenda, member.batch_id)
    _leave_the_past(agenda, [member.id for member in joining if member.epoch > 1])
    new: list[NewStep] = []
    for batch_id in sorted({member.batch_id for member in joining}):
        mine = [member for member in joining if member.batch_id == batch_id]
        phases = _phases_to_catch_up(agenda, batch_id)
        passed = _passed_by(agenda, phases, mine)
        for phase in phases:
            there = [one for one in mine if (phase.id, one.id) not in passed and _goes_through(agenda, phase, one)]
            new += _new_steps(agenda, phase, there)
    # A member that goes on after a retry already has most of its steps. Phases without new steps stay as they are.
    given = {step.phase_execution_id for step in insert_steps(agenda.tx, new, agenda.at)}
    _reopen(agenda, given)
    note_caught_up(agenda.tx, [MemberAt(member.id, member.epoch) for member in joining], agenda.at)
    agenda.members_to_continue.update(member.id for member in joining)
    agenda.batches_to_end.update(member.batch_id for member in joining)


def _reopen(agenda: Agenda, phase_ids: Collection[int]) -> None:
    """Take up phases again that had ended, with what was signed off for those that have not begun before."""
    for phase_id in (reopened := reopen_phases(agenda.tx, phase_ids, agenda.at)):
        phase = agenda.phases[phase_id]
        opened = replace(phase, status=PhaseStatus.DISPATCHED, expanded_at=phase.expanded_at or agenda.at)
        agenda.phases[phase_id] = opened
        agenda.known_doors.pop(phase_id, None)
    phases = [agenda.phases[number] for number in reopened]
    runbooks = {phase.id: agenda.version(phase.batch_id, phase.runbook_version).runbook for phase in phases}
    use_sign_offs(agenda.tx, phases, runbooks, agenda.batches, agenda.at)


def remove_members(agenda: Agenda, member_ids: Collection[int]) -> None:
    """Cancel the open steps of members that left, and create their removal steps, which wait for a job that is out."""
    gone: list[NarrowMember] = []
    for member in narrow_members(agenda.tx, member_ids):
        if (reason := _why_not_removed(agenda, member)) is None:
            gone.append(member)
        else:
            about = {"batch": member.batch_id, "member": member.member_key}
            log.info("a member-removed is ignored: %s", reason, extra=about)
    ids = [member.id for member in gone]
    note_cancelled(agenda, cancel_steps_of_members(agenda.tx, ids, agenda.at))
    note_seen_off(agenda.tx, [MemberAt(member.id, member.epoch) for member in gone], agenda.at)
    undo_membership(agenda, gone)
    agenda.members_to_continue.update(ids)
    for batch_id in {member.batch_id for member in gone}:
        _look_at_init(agenda, batch_id)
    # The scheduler or a person cancelled their steps when they were removed, so any running phase may be over now.
    for batch_id in {member.batch_id for member in gone}:
        running = [phase for phase in agenda.phases_of(batch_id) if phase.status is PhaseStatus.DISPATCHED]
        agenda.phases_to_end.update(phase.id for phase in running)
        agenda.batches_to_end.add(batch_id)


def _look_at_init(agenda: Agenda, batch_id: int) -> None:
    """Let an init begin that only a rejection keeps: it was one of another list of members (rule S6)."""
    batch = agenda.batches.get(batch_id)
    if batch is not None and batch.status is BatchStatus.INIT_DISPATCHED:
        agenda.inits_to_continue.add(batch_id)


def _why_not_added(agenda: Agenda, member: NarrowMember) -> str | None:
    batch = agenda.batches.get(member.batch_id)
    if batch is None:
        return "it belongs to another batch"
    if member.status is not MemberStatus.ACTIVE:
        return f"the member is {member.status}"
    if member.caught_up_at is not None:
        return "it has caught up already"
    if batch.status is not BatchStatus.ACTIVE:
        return f"the batch is {batch.status}"
    return "the batch is held" if agenda.gates.hold_of(batch.id) is not None else None


def _why_not_removed(agenda: Agenda, member: NarrowMember) -> str | None:
    if member.batch_id not in agenda.batches:
        return "it belongs to another batch"
    if member.status is not MemberStatus.REMOVED:
        return f"the member is {member.status}"
    # A second time would add the removal steps of a newer version, if the batch has taken one since.
    return "it was seen off already" if member.seen_off_at is not None else None


def _phases_to_catch_up(agenda: Agenda, batch_id: int) -> list[PhaseRow]:
    """Return the phases of the batch's version that have begun, ended or were skipped."""
    number = agenda.version_of(batch_id).number
    current = [phase for phase in agenda.phases_of(batch_id) if phase.runbook_version == number]
    return [phase for phase in current if is_caught_up_with(phase.status)]


def _passed_by(agenda: Agenda, phases: Sequence[PhaseRow], members: Sequence[NarrowMember]) -> set[tuple[int, int]]:
    """Return the phases that their version skipped and that members who go on after a retry have behind them (O14).

    These members had steps in a later phase of the version before. Who joins late has no steps yet, and does them all.
    """
    skipped = [phase for phase in phases if phase.dispatched_at is None]
    if not skipped:
        return set()
    reached = members_in_phases(agenda.tx, [phase.id for phase in phases], [member.id for member in members])
    by_id = {phase.id: phase for phase in phases}
    return {
        (phase.id, member_id)
        for phase in skipped
        for phase_id, member_id in reached
        if phase.order < by_id[phase_id].order
    }


def _goes_through(agenda: Agenda, phase: PhaseRow, member: NarrowMember) -> bool:
    first = member.first_phase
    return first is None or not first.leaves_out(phase.runbook_version, agenda.place_of(phase))


def _new_steps(agenda: Agenda, phase: PhaseRow, members: Sequence[NarrowMember]) -> list[NewStep]:
    steps = fields_from_phase(agenda, phase)
    return [
        NewStep(
            batch_id=phase.batch_id,
            phase_execution_id=phase.id,
            batch_member_id=member.id,
            epoch=member.epoch,
            **fields,
        )
        for member in members
        for fields in steps
    ]


def _leave_the_past(agenda: Agenda, member_ids: Sequence[int]) -> None:
    """Cancel the old work of members that came back, except a compensation that has begun."""
    note_cancelled(agenda, cancel_steps_of_older_epochs(agenda.tx, member_ids, agenda.at))
    waiting = [
        state for state in unfinished_rollbacks_of_members(agenda.tx, member_ids) if state.status is StepStatus.PENDING
    ]
    begun = {
        rollback.sequence_key
        for rollback in rollbacks_in_sequences(agenda.tx, {state.sequence_key for state in waiting})
        if rollback.attempt > 0
    }
    cancel(agenda.tx, Kind.ROLLBACK, [state.id for state in waiting if state.sequence_key not in begun], agenda.at)
