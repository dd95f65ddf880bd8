"""Phases as gates see them: what each declares, and what that rests on, loaded in one way for all services (rule G1).

What needs a query is loaded only for phases that declare it.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from functools import lru_cache

from matoolkit.announcing.cohorts import with_cohorts
from matoolkit.announcing.signoffs import with_sign_offs
from matoolkit.domain.doors import PhaseDoor
from matoolkit.domain.windows import hours_of
from matoolkit.errors import InvalidRunbook
from matoolkit.runbook.model import Runbook
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store.batches import NarrowBatch
from matoolkit.store.phases import PhaseRow, phases_of_batches
from matoolkit.store.runbooks import RunbookRow, runbook_version
from matoolkit.store.sql.transaction import Transaction

log = logging.getLogger(__name__)

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


def runbooks_of(
    tx: Transaction, phases: Collection[PhaseRow], batches: Mapping[int, NarrowBatch]
) -> dict[int, Runbook]:
    """Return the versions of runbooks that phases come from, by the phases' ids."""
    versions: dict[tuple[str, int], Runbook] = {}
    found: dict[int, Runbook] = {}
    for phase in phases:
        key = (batches[phase.batch_id].runbook_name, phase.runbook_version)
        if key not in versions:
            versions[key] = stored_runbook(tx, *key)
        found[phase.id] = versions[key]
    return found


def readable(tx: Transaction, phases: Collection[PhaseRow], batches: Mapping[int, NarrowBatch]) -> list[PhaseRow]:
    """Return the phases whose versions can be read; the others keep no other batch (rule T1)."""
    versions = {(batches[phase.batch_id].runbook_name, phase.runbook_version) for phase in phases}
    known = readable_runbooks(tx, versions)
    return [phase for phase in phases if (batches[phase.batch_id].runbook_name, phase.runbook_version) in known]


def readable_runbooks(tx: Transaction, versions: Collection[tuple[str, int]]) -> dict[tuple[str, int], Runbook]:
    """Read versions, by name and number; a document that today's rules refuse is left out."""
    rows = [row for name, version in versions if (row := runbook_version(tx, name, version)) is not None]
    return {(row.name, row.version): read for row in rows if (read := readable_version(row)) is not None}


def readable_version(row: RunbookRow) -> Runbook | None:
    """Read a version, unless today's rules refuse its document."""
    try:
        return _parsed(row.yaml_content)
    except InvalidRunbook as error:
        _complain(row.name, row.version, str(error))
        return None


# A sweep comes again every half a minute, and says the same thing once.
@lru_cache(maxsize=128)
def _complain(name: str, version: int, why: str) -> None:
    log.warning("version %d cannot be read, so its batches wait: %s", version, why, extra={"runbook": name})


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


def stored_runbook(tx: Transaction, name: str, version: int) -> Runbook:
    """Read a version of a runbook."""
    row = runbook_version(tx, name, version)
    if row is None:
        raise LookupError(f"runbook {name} has no version {version}")
    return _parsed(row.yaml_content)


# A version never changes, so the same document is parsed once.
@lru_cache(maxsize=32)
def _parsed(text: str) -> Runbook:
    return parse_runbook(text)
