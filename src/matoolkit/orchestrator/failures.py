"""Failure for good: the member or the init fails, its open steps are cancelled, its work is undone (rule O8)."""

import logging

from matoolkit.domain.member import decide_failure
from matoolkit.domain.moves import Ignore
from matoolkit.ids import Kind
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.cancelling import note_cancelled
from matoolkit.orchestrator.compensating import undo_inits, undo_steps
from matoolkit.orchestrator.definitions import definition_of
from matoolkit.store.members import MemberAt, fail_members
from matoolkit.store.moves import cancel
from matoolkit.store.narrow_executions import init_states_of_batches
from matoolkit.store.narrow_members import narrow_members
from matoolkit.store.steps import cancel_steps_of_members

log = logging.getLogger(__name__)


def handle_failed_steps(agenda: Agenda) -> None:
    """Fail the members whose steps failed for good; others go on."""
    failed, agenda.failed_steps = agenda.failed_steps, []
    if not failed:
        return
    members = {member.id: member for member in narrow_members(agenda.tx, {state.batch_member_id for state in failed})}
    failing: dict[int, MemberAt] = {}
    for state in failed:
        member = members[state.batch_member_id]
        agenda.phases_to_end.add(state.phase_execution_id)
        agenda.members_to_continue.add(member.id)
        decided = decide_failure(member.status, member.epoch, state.epoch)
        if isinstance(decided, Ignore):
            about = {"member": member.member_key, "step": definition_of(agenda, state).step.name}
            log.info("a failed step does not fail its member: %s", decided.reason, extra=about)
        else:
            failing[member.id] = MemberAt(member.id, member.epoch)
    # Consequences only for members that the guarded update failed (rule M3).
    gone = set(fail_members(agenda.tx, list(failing.values()), agenda.at))
    agenda.failed_in.update(state.phase_execution_id for state in failed if state.batch_member_id in gone)
    cancelled = cancel_steps_of_members(agenda.tx, gone, agenda.at)
    note_cancelled(agenda, cancelled)
    undo_steps(agenda, [state for state in failed if state.batch_member_id in gone])


def handle_failed_inits(agenda: Agenda) -> None:
    """Cancel the open steps of inits with a failed step, and undo them; then their batches end."""
    failed, agenda.failed_inits = agenda.failed_inits, []
    if not failed:
        return
    batches = {state.batch_id for state in failed}
    # An init has one job at a time: the steps beside the failed one wait or have ended, and those that ended stay so.
    cancel(agenda.tx, Kind.INIT, [state.id for state in init_states_of_batches(agenda.tx, batches)], agenda.at)
    undo_inits(agenda, failed)
    agenda.inits_to_continue |= batches
