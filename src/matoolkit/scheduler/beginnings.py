"""Batches that waited for a person before they began: they begin, or end without anybody in them (rule T5)."""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from matoolkit.announcing.waking import wake_after_init
from matoolkit.domain.messages import BatchInit
from matoolkit.ids import batch_init_id
from matoolkit.ports import Outgoing, Publisher
from matoolkit.runbook.model import Runbook
from matoolkit.scheduler.tallies import Tally
from matoolkit.store.batches import BatchRow, activate_batches, cancel_batches, dispatch_init, release_batches
from matoolkit.store.enrolments import first_phases_of_active
from matoolkit.store.phases import cancel_phases, phases_of_batches
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

    One that follows an older version is only let go: it begins when it takes the active one, in this tick still.
    """
    released = set(release_batches(tx, [batch.id for batch in waiting]))
    current = [batch for batch in waiting if batch.id in released and batch.runbook_id == runbook.id]
    if model.init:
        request_inits(tx, publisher, runbook, current, at)
    else:
        wake_after_init(tx, publisher, activate_batches(tx, [batch.id for batch in current]))
    tally.batches_released += len(released)
    for batch_id in sorted(released):
        log.info("begins: %s", reasons[batch_id], extra={"runbook": tally.runbook_name, "batch": batch_id})


def request_inits(
    tx: Transaction, publisher: Publisher, runbook: RunbookRow, batches: Sequence[BatchRow], at: datetime
) -> int:
    """Ask for the init of batches once more, that of a version, and return for how many."""
    requested = set(dispatch_init(tx, [batch.id for batch in batches], at))
    # The batches were read before their init was requested, which counted it.
    messages = [
        Outgoing(
            batch_init_id(batch.id, runbook.version, batch.init_count + 1),
            BatchInit(batch.id, runbook.name, runbook.version),
        )
        for batch in batches
        if batch.id in requested
    ]
    if messages:
        publisher.publish(tx, messages)
    return len(messages)


def cancel_emptied(tx: Transaction, batch_ids: Collection[int], tally: Tally, at: datetime) -> None:
    """End batches that are locked, have not begun and have no member left."""
    empty = set(batch_ids) - first_phases_of_active(tx, batch_ids).keys()
    ended = cancel_batches(tx, sorted(empty), at)
    release_batches(tx, ended)
    cancel_phases(tx, [phase.id for phase in phases_of_batches(tx, ended)], at)
    for batch_id in ended:
        about = {"runbook": tally.runbook_name, "batch": batch_id}
        log.info("cancelled: it had not begun, and the source has nobody for it any more", extra=about)
