"""The phases of batches that take another version, changed as the rules decided (rules V2 to V4 and O14)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from matoolkit.announcing.withdrawal import withdraw_unsent
from matoolkit.domain.transitions import PlannedPhase, Transition
from matoolkit.ports import Publisher
from matoolkit.store.phases import NewPhase, insert_phases, supersede_phases
from matoolkit.store.sql.transaction import Transaction
from matoolkit.store.steps import cancel_steps_of_phases


@dataclass(frozen=True, slots=True)
class ChangedPhases:
    """How many phases were created and superseded, and how many steps were cancelled with them."""

    created: int
    superseded: int
    steps_cancelled: int


def change_phases(
    tx: Transaction, publisher: Publisher, version: int, transitions: Sequence[Transition], at: datetime
) -> ChangedPhases:
    """Supersede old phases with their open steps, and create those of a version, for batches that follow it now."""
    superseded = supersede_phases(tx, [phase.id for one in transitions for phase in one.superseded], at)
    interrupted = {phase.id for one in transitions for phase in one.interrupted}
    cancelled = cancel_steps_of_phases(tx, interrupted.intersection(superseded), at)
    withdraw_unsent(tx, publisher, cancelled)
    new = [_new_phase(one.batch_id, version, phase, at) for one in transitions for phase in one.created]
    insert_phases(tx, new)
    return ChangedPhases(len(new), len(superseded), len(cancelled))


def _new_phase(batch_id: int, version: int, phase: PlannedPhase, at: datetime) -> NewPhase:
    return NewPhase(
        batch_id=batch_id,
        runbook_version=version,
        phase_name=phase.name,
        phase_index=phase.index,
        offset_minutes=phase.offset_minutes,
        due_at=phase.due_at,
        status=phase.status,
        completed_at=at if phase.is_skipped else None,
        late_after=phase.late_after,
    )
