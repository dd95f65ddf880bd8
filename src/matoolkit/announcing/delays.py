"""What freezes and windows do to phases that are due at another time (rule K6)."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from matoolkit.announcing.versions import runbooks_of
from matoolkit.domain.delays import Ahead, Delay, delays
from matoolkit.domain.lateness import limit_of
from matoolkit.domain.windows import hours_of
from matoolkit.store.batches import NarrowBatch
from matoolkit.store.gates import freezes_ahead
from matoolkit.store.phases import PhaseRow
from matoolkit.store.sql.transaction import Transaction


def delays_of(
    tx: Transaction,
    batches: Mapping[int, NarrowBatch],
    phases: Sequence[PhaseRow],
    due: Mapping[int, datetime],
    at: datetime,
) -> list[Delay]:
    """Return the phases that could begin only too late, or never, if they were due at these times, by their ids."""
    if not phases:
        return []
    runbooks = runbooks_of(tx, phases, batches)
    ahead = (
        Ahead(
            phase.batch_id,
            batches[phase.batch_id].runbook_name,
            phase.phase_name,
            due[phase.id],
            limit_of(due[phase.id], runbooks[phase.id].max_delay),
            hours_of(runbooks[phase.id], runbooks[phase.id].phases[phase.phase_index]),
        )
        for phase in phases
    )
    return delays(ahead, freezes_ahead(tx, at), at)
