"""Batches that waited for a person before they began: they begin, or are cancelled if they are empty (rule T5).

`domain/beginnings.py` decides which.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from matoolkit.announcing.cancelling import cancel_with_work
from matoolkit.announcing.inits import request_inits
from matoolkit.announcing.waking import activate_and_wake
from matoolkit.domain.lateness import limit_of
from matoolkit.ports import Publisher
from matoolkit.runbook.model import Runbook
from matoolkit.scheduler.tallies import Tally
from matoolkit.store.batches import BatchRow
from matoolkit.store.enrolments import first_phases_of_active
from matoolkit.store.holds import release_batches
from matoolkit.store.lateness import count_anew
from matoolkit.store.runbooks import RunbookRow
from matoolkit.store.sql.transaction import Transaction

log = logging.getLogger(__name__)


def begin(
    tx: Transaction,
    publisher: Publisher,
    runbook: RunbookRow,
    model: Runbook,
    waiting: Sequence[BatchRow],
    reasons: Mapping[int, str],
    tally: Tally,
    at: datetime,
) -> None:
    """Let batches begin that are locked: with their init, or at once.

    A batch that follows an older version is only released: it begins when it takes the active one, later in this tick.
    """
    released = set(release_batches(tx, [batch.id for batch in waiting], at))
    _count_anew(tx, model, released, at)
    current = [batch for batch in waiting if batch.id in released and batch.runbook_id == runbook.id]
    if model.init:
        request_inits(tx, publisher, runbook.version, current, at)
    else:
        activate_and_wake(tx, publisher, [batch.id for batch in current])
    tally.batches_released += len(released)
    for batch_id in sorted(released):
        log.info("begins: %s", reasons[batch_id], extra={"runbook": tally.runbook_name, "batch": batch_id})


def _count_anew(tx: Transaction, model: Runbook, batch_ids: Collection[int], at: datetime) -> None:
    """A person lets them begin although T has passed, so what was due counts from now (rule K5)."""
    limit = limit_of(at, model.max_delay)
    if limit is not None:
        count_anew(tx, batch_ids, at, limit)


def cancel_emptied(
    tx: Transaction, publisher: Publisher, batch_ids: Collection[int], tally: Tally, at: datetime
) -> None:
    """End batches that are locked, have not begun and have no member left."""
    empty = set(batch_ids) - first_phases_of_active(tx, batch_ids).keys()
    for batch_id in cancel_with_work(tx, publisher, sorted(empty), at).batch_ids:
        about = {"runbook": tally.runbook_name, "batch": batch_id}
        log.info("cancelled: it had not begun, and the source has no rows for it any more", extra=about)
