"""Poll and retry checks: sent again if that is still wanted (rules O6, O7, T9)."""

import logging
from collections.abc import Mapping, Sequence

from matoolkit.domain.messages import PollCheck, RetryCheck
from matoolkit.domain.states import MemberStatus, StepStatus
from matoolkit.domain.step import why_not_sent_again
from matoolkit.ids import Kind, Reason
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.dispatching import send_again
from matoolkit.orchestrator.moving import touch_freed
from matoolkit.store.narrow_executions import State, StepState
from matoolkit.store.narrow_members import narrow_members

log = logging.getLogger(__name__)


def apply_checks(
    agenda: Agenda,
    kind: Kind,
    states: Mapping[int, State],
    checks: Sequence[PollCheck | RetryCheck],
) -> None:
    """Send work again whose poll or retry is due."""
    again: dict[int, tuple[State, Reason]] = {}
    unwanted = _of_members_gone(
        agenda, [states[check.execution_id] for check in checks if check.execution_id in states]
    )
    for check in checks:
        state = states.get(check.execution_id)
        if state is None:
            _log_ignored(check, "there is no such work")
            continue
        if state.id in unwanted:
            _log_ignored(check, "its member has left")
            continue
        reason = Reason.POLL if isinstance(check, PollCheck) else Reason.RETRY
        if (ignored := why_not_sent_again(state, reason, agenda.at)) is None:
            again[state.id] = (state, reason)
        elif state.status is StepStatus.PENDING and state.retry_after is None:
            # A person retried it: it is sent when its turn comes, with parameters resolved again.
            touch_freed(agenda, state)
        else:
            _log_ignored(check, ignored)
    send_again(agenda, kind, list(again.values()))


def _of_members_gone(agenda: Agenda, states: Sequence[State]) -> set[int]:
    """Find steps of members that have left or begun a new epoch; the message that cancels them has not come yet."""
    steps = [state for state in states if isinstance(state, StepState)]
    members = {member.id: member for member in narrow_members(agenda.tx, {step.batch_member_id for step in steps})}
    return {
        step.id
        for step in steps
        if (member := members[step.batch_member_id]).status is not MemberStatus.ACTIVE or member.epoch != step.epoch
    }


def _log_ignored(check: PollCheck | RetryCheck, reason: str) -> None:
    what = "poll-check" if isinstance(check, PollCheck) else "retry-check"
    log.info("a %s is ignored: %s", what, reason, extra={"step": f"{check.kind}-{check.execution_id}"})
