"""Phases as gates see them: what each declares, and what that rests on, loaded in one way for all services (rule G1).

What needs a query is loaded only for phases that declare it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from functools import lru_cache

from matoolkit.domain.gates import PhaseDoor
from matoolkit.runbook.model import Runbook
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store.batches import NarrowBatch
from matoolkit.store.phases import PhaseRow, phases_of_batches
from matoolkit.store.runbooks import runbook_version
from matoolkit.store.sql.transaction import Transaction

# Returns the version of the runbook that a phase comes from.
RunbookOf = Callable[[PhaseRow], Runbook]


def phase_doors(
    wanted: Iterable[PhaseRow],
    phases: Collection[PhaseRow],
    batches: Mapping[int, NarrowBatch],
    at: datetime,
    runbook_of: RunbookOf,
) -> dict[int, PhaseDoor]:
    """Return phases as gates see them, by their ids, given all phases of their batches."""
    return {phase.id: _door(phase, phases, batches[phase.batch_id], at, runbook_of(phase)) for phase in wanted}


def load_doors(
    tx: Transaction, wanted: Collection[PhaseRow], batches: Mapping[int, NarrowBatch], at: datetime
) -> dict[int, PhaseDoor]:
    """Read what gates want to know of phases, for services that do not have it at hand."""
    if not wanted:
        return {}

    versions: dict[tuple[str, int], Runbook] = {}

    def runbook_of(phase: PhaseRow) -> Runbook:
        key = (batches[phase.batch_id].runbook_name, phase.runbook_version)
        if key not in versions:
            versions[key] = _stored(tx, *key)
        return versions[key]

    phases = phases_of_batches(tx, {phase.batch_id for phase in wanted})
    return phase_doors(wanted, phases, batches, at, runbook_of)


def _door(phase: PhaseRow, phases: Iterable[PhaseRow], batch: NarrowBatch, at: datetime, runbook: Runbook) -> PhaseDoor:
    version = (phase.batch_id, phase.runbook_version)
    reached = frozenset(
        other.id
        for other in phases
        if (other.batch_id, other.runbook_version) == version and other.order <= phase.order
    )
    rules = runbook.phases[phase.phase_index]
    return PhaseDoor(phase.id, batch.id, batch.runbook_name, phase.order, at, reached, rules)


def _stored(tx: Transaction, name: str, version: int) -> Runbook:
    row = runbook_version(tx, name, version)
    if row is None:
        raise LookupError(f"runbook {name} has no version {version}")
    return _parsed(row.yaml_content)


# A version never changes, so the same document is parsed once.
@lru_cache(maxsize=32)
def _parsed(text: str) -> Runbook:
    return parse_runbook(text)
