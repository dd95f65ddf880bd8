"""Behind a gate that shuts the send door nothing is left that a worker could find (rule G4)."""

from collections.abc import Iterable

from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.processes import Plant
from matoolkit.simulate.recording import Entry
from matoolkit.store.dialect.types import stored_text

_WORK = {"step": "w.batch_member_id", "rollback": "w.batch_member_id", "init": "NULL"}
# A gate of a phase is about that phase and the later ones of its version.
_REACHED = """EXISTS (SELECT 1 FROM phase_executions of JOIN phase_executions mine ON mine.id = w.phase_execution_id
 WHERE of.id = g.phase_execution_id AND of.batch_id = mine.batch_id AND of.runbook_version = mine.runbook_version
 AND (-of.offset_minutes, of.phase_index) <= (-mine.offset_minutes, mine.phase_index))"""
# Jobs that a gate covers and that lie where a worker finds them. One that was delivered before cannot be recalled.
_LEFT = """
SELECT w.job_id FROM {table}_executions w JOIN gates g ON g.id = {gate} JOIN batches b ON b.id = w.batch_id
JOIN bus_messages j ON j.message_id = w.job_id AND j.topic = 'worker-jobs' AND j.delivery_count = 0
WHERE w.status = 'dispatched' AND g.opened_at IS NULL AND (g.shut_until IS NULL OR g.shut_until > '{now}')
AND (g.batch_id IS NULL OR g.batch_id = w.batch_id)
AND (g.worker_id IS NULL OR g.worker_id = w.worker_id) AND (g.runbook_name IS NULL OR g.runbook_name = b.runbook_name)
AND (g.member_key_fold IS NULL OR g.member_key_fold = (SELECT member_key_fold FROM batch_members WHERE id = {member}))
AND (g.phase_execution_id IS NULL OR {phase})
"""


def none_is_left(plant: Plant, gate_id: int) -> None:
    """Demand that no job that a gate covers waits for a worker; with a bus that is apart none can be recalled."""
    if plant.is_apart:
        return
    left, now = [], stored_text(plant.clock.now())
    for table, member in _WORK.items():
        phase = _REACHED if table == "step" else "0"
        left += plant.state.look(_LEFT.format(table=table, member=member, gate=gate_id, phase=phase, now=now))
    if left:
        raise Violation(f"gate {gate_id} is shut, and jobs that it covers wait for a worker: {left}")


def jobs_are_taken_back(plant: Plant, entries: Iterable[Entry]) -> None:
    """Demand the same of gates whose jobs were just taken back: freezes that have begun, and budgets that stop."""
    for entry in entries:
        if entry.what == "swept":
            none_is_left(plant, entry.id)
