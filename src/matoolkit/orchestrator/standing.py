"""Time stands still behind a send gate: for how long one kept the jobs of some work (rule G7)."""

from datetime import datetime, timedelta

from matoolkit.domain.doors import Work
from matoolkit.domain.gates import time_kept
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.definitions import definition_of
from matoolkit.store.gatekeeping import gates_since
from matoolkit.store.narrow_executions import State, StepState
from matoolkit.store.narrow_members import narrow_members


def time_kept_of(agenda: Agenda, state: State, since: datetime) -> timedelta:
    """Return for how long gates kept the jobs of work since a time.

    Asked only for work that time would end now, which is rare. The gates are read once for all of it.
    """
    if agenda.gates_since is None or agenda.gates_since[0] > since:
        agenda.gates_since = since, gates_since(agenda.tx, since, agenda.at)
    _, gates = agenda.gates_since
    number = state.phase_execution_id if isinstance(state, StepState) else None
    phase = None if number is None else agenda.doors([number])[number]
    if not gates and (phase is None or not phase.has_gates):
        return timedelta()
    key = None
    if state.batch_member_id is not None and any(gate.member_key_fold is not None for gate in gates):
        key = narrow_members(agenda.tx, [state.batch_member_id])[0].member_key
    batch = agenda.batches[state.batch_id]
    work = Work(batch.runbook_name, batch.id, definition_of(agenda, state).step.worker_id, key, phase=phase)
    return time_kept(gates, work, since, agenda.at)
