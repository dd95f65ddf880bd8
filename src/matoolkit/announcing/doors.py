"""Phases as gates see them: what each declares, and what that rests on, loaded in one way for all services (rule G1).

What needs a query is loaded only for phases that declare it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime

from matoolkit.announcing.cohorts import with_cohorts
from matoolkit.announcing.signoffs import with_sign_offs
from matoolkit.announcing.versions import runbooks_of
from matoolkit.domain.doors import PhaseDoor
from matoolkit.domain.windows import hours_of
from matoolkit.runbook.model import Runbook
from matoolkit.store.batches import NarrowBatch
from matoolkit.store.phases import PhaseRow, phases_of_batches
from matoolkit.store.sql.transaction import Transaction

# Returns the version of the runbook that a phase comes from.
RunbookOf = Callable[[PhaseRow], Runbook]


def phase_doors(
    tx: Transaction,
    wanted: Collection[PhaseRow],
    phases: Collection[PhaseRow],
    batches: Mapping[int, NarrowBatch],
    at: datetime,
    runbook_of: RunbookOf,
) -> dict[int, PhaseDoor]:
    """Return phases as gates see them, by their ids, given all phases of their batches."""
    doors = {phase.id: _door(phase, phases, batches[phase.batch_id], at, runbook_of(phase)) for phase in wanted}
    return with_sign_offs(tx, with_cohorts(tx, doors, wanted), wanted, batches, at)


def load_doors(
    tx: Transaction, wanted: Collection[PhaseRow], batches: Mapping[int, NarrowBatch], at: datetime
) -> dict[int, PhaseDoor]:
    """Read what gates want to know of phases, for services that do not have it at hand."""
    if not wanted:
        return {}

    runbooks = runbooks_of(tx, wanted, batches)

    def runbook_of(phase: PhaseRow) -> Runbook:
        return runbooks[phase.id]

    phases = phases_of_batches(tx, {phase.batch_id for phase in wanted})
    return phase_doors(tx, wanted, phases, batches, at, runbook_of)


def _door(phase: PhaseRow, phases: Iterable[PhaseRow], batch: NarrowBatch, at: datetime, runbook: Runbook) -> PhaseDoor:
    version = (phase.batch_id, phase.runbook_version)
    reached = frozenset(
        other.id
        for other in phases
        if (other.batch_id, other.runbook_version) == version and other.order <= phase.order
    )
    rules = runbook.phases[phase.phase_index]
    return PhaseDoor(
        phase.id, batch.id, batch.runbook_name, phase.order, at, reached, rules, hours=hours_of(runbook, rules)
    )
