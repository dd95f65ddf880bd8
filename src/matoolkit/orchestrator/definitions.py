"""From rows to what the runbook says about them, and from the runbook to rows."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeAlias

from matoolkit.domain.states import RollbackCause
from matoolkit.orchestrator.pile import Pile
from matoolkit.orchestrator.versions import Version
from matoolkit.runbook.model import Runbook, Step
from matoolkit.store.working import InitState, NextStep, RollbackState, StepState

Work: TypeAlias = StepState | NextStep | InitState | RollbackState

REMOVAL = "on_member_removed"


def version_of(pile: Pile, work: Work) -> Version:
    """Return the version of the runbook that work comes from."""
    return pile.version(work.batch_id, version_number_of(pile, work))


def version_number_of(pile: Pile, work: Work) -> int:
    """Say which version of the runbook work comes from."""
    if isinstance(work, StepState | NextStep):
        return pile.phases[work.phase_execution_id].runbook_version
    return work.runbook_version


def definition_of(pile: Pile, work: Work) -> Step:
    """Return what the runbook says about work."""
    match work:
        case StepState() | NextStep():
            return steps_of_phase(pile, work.phase_execution_id)[work.step_index]
        case InitState():
            return version_of(pile, work).runbook.init[work.step_index]
        case RollbackState(cause=RollbackCause.MEMBER_REMOVED):
            return version_of(pile, work).runbook.on_member_removed[work.step_index]
        case RollbackState():
            return (version_of(pile, work).runbook.rollback(work.sequence_name) or ())[work.step_index]


def steps_of_phase(pile: Pile, phase_id: int) -> Sequence[Step]:
    """Return the steps of a phase as its version of the runbook has them."""
    steps = pile.steps_of_phases.get(phase_id)
    if steps is None:
        phase = pile.phases[phase_id]
        runbook = pile.version(phase.batch_id, phase.runbook_version).runbook
        steps = pile.steps_of_phases[phase_id] = runbook.phases[phase.phase_index].steps
    return steps


def work_of(pile: Pile, runbook: Runbook, step: Step, index: int) -> dict[str, Any]:
    """Return what rows of any kind take over from a step of the runbook."""
    retry, poll = runbook.retry_of(step), step.poll
    return {
        "step_name": step.name,
        "step_index": index,
        "worker_id": step.worker_id,
        "timeout_sec": _seconds(step.timeout or pile.limits.step_timeout),
        "is_poll_step": poll is not None,
        "poll_interval_sec": _seconds(poll.interval) if poll else None,
        "poll_timeout_sec": _seconds(poll.timeout) if poll else None,
        "on_failure": step.on_failure,
        "max_retries": retry.max_retries if retry else 0,
        "retry_interval_sec": _seconds(retry.interval) if retry and retry.interval else None,
    }


def _seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())
