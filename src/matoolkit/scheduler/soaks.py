"""Phases whose pilots have ended them: the others are woken when the soak is over (rule C2)."""

import logging
from collections.abc import Sequence
from datetime import datetime

from matoolkit.announcing.gatekeeping import wake_batches
from matoolkit.announcing.versions import phases_to_read, runbooks_of
from matoolkit.domain.cohorts import is_soak_over
from matoolkit.ports import Publisher
from matoolkit.scheduler.leasing import Confirm
from matoolkit.store import Store
from matoolkit.store.batches import batches_by_id, lock_narrow_batches
from matoolkit.store.cohorts import phases_after_pilots
from matoolkit.store.phases import PhaseRow
from matoolkit.store.sql.transaction import Transaction
from matoolkit.store.windows import note_woken

log = logging.getLogger(__name__)


def wake_after_soaks(store: Store, publisher: Publisher, confirm: Confirm) -> int:
    """Wake the batches of phases whose soak is over, once for each, and return how many phases they were."""
    with store.reading() as tx:
        over = _over(tx, tx.time())
    if not over:
        return 0
    with store.transaction() as tx:
        confirm(tx)
        lock_narrow_batches(tx, {phase.batch_id for phase in over})
        at = tx.time()
        # Read again under the lock: a pilot may have begun again since.
        phases = _over(tx, at)
        note_woken(tx, [phase.id for phase in phases], at)
        wake_batches(tx, publisher, {phase.batch_id for phase in phases})
        for phase in phases:
            about = {"batch": phase.batch_id, "phase": phase.phase_name}
            log.info("the pilots have ended it, and the soak is over", extra=about)
        return len(phases)


def _over(tx: Transaction, at: datetime) -> Sequence[PhaseRow]:
    """Return the phases whose soak is over, and whose members nobody woke since."""
    found = phases_after_pilots(tx)
    batches = {batch.id: batch for batch in batches_by_id(tx, {phase.batch_id for phase in found})}
    phases = phases_to_read(tx, found, batches)
    runbooks = runbooks_of(tx, phases, batches)
    over = []
    for phase in phases:
        rollout = runbooks[phase.id].phases[phase.phase_index].rollout
        soak = None if rollout is None else rollout.soak
        if is_soak_over(phase.pilot_done_at, soak, phase.woken_at, at):
            over.append(phase)
    return over
