"""Versions of runbooks as they were published, read for whatever follows them.

A document that was published may be refused by the rules of today. It then keeps its own batches, and nobody else's
(rule T1).
"""

import logging
from collections.abc import Collection, Mapping
from functools import lru_cache

from matoolkit.errors import InvalidRunbook
from matoolkit.runbook.model import Runbook
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store.batches import NarrowBatch
from matoolkit.store.phases import PhaseRow
from matoolkit.store.runbooks import RunbookRow, runbook_version
from matoolkit.store.sql.transaction import Transaction

log = logging.getLogger(__name__)


def runbook_in(row: RunbookRow) -> Runbook:
    """Read the document of a version."""
    return _parsed(row.yaml_content)


def stored_runbook(tx: Transaction, name: str, version: int) -> Runbook:
    """Read a version of a runbook."""
    row = runbook_version(tx, name, version)
    if row is None:
        raise LookupError(f"runbook {name} has no version {version}")
    return runbook_in(row)


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


def readable_runbooks(tx: Transaction, versions: Collection[tuple[str, int]]) -> dict[tuple[str, int], Runbook]:
    """Read versions, by name and number; a document that today's rules refuse is left out."""
    rows = [row for name, version in versions if (row := runbook_version(tx, name, version)) is not None]
    return {(row.name, row.version): read for row in rows if (read := readable_runbook_in(row)) is not None}


def readable_runbook_in(row: RunbookRow) -> Runbook | None:
    """Read a version, unless today's rules refuse its document."""
    try:
        return runbook_in(row)
    except InvalidRunbook as error:
        _complain(row.name, row.version, str(error))
        return None


def phases_to_read(tx: Transaction, phases: Collection[PhaseRow], batches: Mapping[int, NarrowBatch]) -> list[PhaseRow]:
    """Return the phases whose versions can be read; the others keep no other batch (rule T1)."""
    versions = {(batches[phase.batch_id].runbook_name, phase.runbook_version) for phase in phases}
    known = readable_runbooks(tx, versions)
    return [phase for phase in phases if (batches[phase.batch_id].runbook_name, phase.runbook_version) in known]


# A sweep comes again every half a minute, and says the same thing once.
@lru_cache(maxsize=128)
def _complain(name: str, version: int, why: str) -> None:
    log.warning("version %d cannot be read, so its batches wait: %s", version, why, extra={"runbook": name})


# A version never changes, so the same document is parsed once.
@lru_cache(maxsize=32)
def _parsed(text: str) -> Runbook:
    return parse_runbook(text)
