"""From rows to what the runbook says about them, and from the runbook to rows."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeAlias

from matoolkit.domain.states import RollbackCause
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.versions import Definition
from matoolkit.runbook.model import Runbook, Step
from matoolkit.store.narrow_executions import InitState, NextStep, RollbackState, StepState

Dispatchable: TypeAlias = StepState | NextStep | InitState | RollbackState

REMOVAL = "on_member_removed"

_STEPS = (NextStep, StepState)


def definition_of(agenda: Agenda, work: Dispatchable) -> Definition:
    """Return what the version of the runbook that work comes from says about it."""
    if isinstance(work, _STEPS):
        return steps_of_phase(agenda, work.phase_execution_id)[work.step_index]
    version = agenda.version(work.batch_id, work.runbook_version)
    return version.definition(_sequence_of(version.runbook, work)[work.step_index])


def steps_of_phase(agenda: Agenda, phase_id: int) -> Sequence[Definition]:
    """Return the steps of a phase as its version of the runbook has them."""
    steps = agenda.steps_of_phases.get(phase_id)
    if steps is None:
        phase = agenda.phases[phase_id]
        version = agenda.version(phase.batch_id, phase.runbook_version)
        steps = list(map(version.definition, version.runbook.phases[phase.phase_index].steps))
        agenda.steps_of_phases[phase_id] = steps
    return steps


def _sequence_of(runbook: Runbook, work: InitState | RollbackState) -> Sequence[Step]:
    match work:
        case InitState():
            return runbook.init
        case RollbackState(cause=RollbackCause.MEMBER_REMOVED):
            return runbook.on_member_removed
        case RollbackState():
            return runbook.rollback(work.sequence_name) or ()


def fields_from_step(agenda: Agenda, runbook: Runbook, step: Step, index: int) -> dict[str, Any]:
    """Return the fields that a new execution of any kind takes from a step of the runbook."""
    retry, poll = runbook.retry_of(step), step.poll
    return {
        "step_name": step.name,
        "step_index": index,
        "worker_id": step.worker_id,
        "timeout_sec": _seconds(step.timeout or agenda.limits.step_timeout),
        "is_poll_step": poll is not None,
        "poll_interval_sec": _seconds(poll.interval) if poll else None,
        "poll_timeout_sec": _seconds(poll.timeout) if poll else None,
        "on_failure": step.on_failure,
        "max_retries": retry.max_retries if retry else 0,
        "retry_interval_sec": _seconds(retry.interval) if retry and retry.interval else None,
    }


def _seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())
