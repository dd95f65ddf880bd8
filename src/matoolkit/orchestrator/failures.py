"""Failure for good: the member or the init fails, what it has open is cancelled, what it did is undone (rule O8)."""

import logging

from matoolkit.announcing.withdrawal import withdraw_unsent
from matoolkit.domain.member import Member, StepFailed, decide
from matoolkit.domain.states import MemberStatus
from matoolkit.ids import Kind
from matoolkit.orchestrator.agenda import Pile
from matoolkit.orchestrator.compensating import undo_inits, undo_steps
from matoolkit.orchestrator.definitions import definition_of
from matoolkit.store.members import MemberAt, fail_members
from matoolkit.store.moves import cancel
from matoolkit.store.narrow_executions import init_states_of_batches
from matoolkit.store.narrow_members import member_states
from matoolkit.store.steps import cancel_steps_of_members

log = logging.getLogger(__name__)


def settle_failed_steps(pile: Pile) -> None:
    """Let members fail whose steps failed for good; others go on."""
    failed, pile.failed_steps = pile.failed_steps, []
    if not failed:
        return
    members = {member.id: member for member in member_states(pile.tx, {state.batch_member_id for state in failed})}
    failing: dict[int, MemberAt] = {}
    for state in failed:
        member = members[state.batch_member_id]
        pile.phases_to_end.add(state.phase_execution_id)
        pile.members_to_move.add(member.id)
        decision = decide(Member(member.status, member.epoch), StepFailed(state.epoch))
        if decision.ignored is None and decision.member.status is MemberStatus.FAILED:
            failing[member.id] = MemberAt(member.id, member.epoch)
        else:
            about = {"member": member.member_key, "step": definition_of(pile, state).step.name}
            log.info("a failed step fails nobody: %s", decision.ignored, extra=about)
    gone = set(fail_members(pile.tx, list(failing.values()), pile.at))
    cancelled = cancel_steps_of_members(pile.tx, gone, pile.at)
    withdraw_unsent(pile.tx, pile.publisher, cancelled)
    pile.phases_to_end.update(step.phase_execution_id for step in cancelled)
    undo_steps(pile, [state for state in failed if state.batch_member_id in gone])


def settle_failed_inits(pile: Pile) -> None:
    """Cancel what is left of inits of which a step failed for good, and undo them; then their batches end."""
    failed, pile.failed_inits = pile.failed_inits, []
    if not failed:
        return
    batches = {state.batch_id for state in failed}
    rest = [state for state in init_states_of_batches(pile.tx, batches) if state.status == "pending"]
    cancel(pile.tx, Kind.INIT, [state.id for state in rest], pile.at)
    undo_inits(pile, failed)
    pile.inits_to_move |= batches
