"""Requests inits, and cancels them for a new version or a person (rules O1, O12 and V5)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from matoolkit.announcing.messages import batch_init
from matoolkit.announcing.withdrawal import withdraw_unsent
from matoolkit.domain.states import OPEN_STEPS
from matoolkit.ids import Kind
from matoolkit.ports import Publisher
from matoolkit.store.batches import NarrowBatch, dispatch_init
from matoolkit.store.executions import InitRow
from matoolkit.store.moves import cancel
from matoolkit.store.sql.transaction import Transaction


def request_inits(
    tx: Transaction, publisher: Publisher, version: int, batches: Sequence[NarrowBatch], at: datetime
) -> int:
    """Request the init of a version for batches once more, and return for how many."""
    requested = set(dispatch_init(tx, [batch.id for batch in batches], at))
    # The batches were read before `init_count` grew, so the number of this request is one higher.
    counted = [replace(batch, init_count=batch.init_count + 1) for batch in batches if batch.id in requested]
    announce_inits(tx, publisher, version, counted)
    return len(counted)


def announce_inits(tx: Transaction, publisher: Publisher, version: int, batches: Sequence[NarrowBatch]) -> None:
    """Tell the orchestrator of inits that batches have counted as requested."""
    if batches:
        publisher.publish(tx, [batch_init(batch, version) for batch in batches])


def cancel_inits(tx: Transaction, publisher: Publisher, inits: Sequence[InitRow], at: datetime) -> None:
    """Cancel the open steps of inits, and take back their jobs that have not left yet."""
    unfinished = [init for init in inits if init.status in OPEN_STEPS]
    cancelled = set(cancel(tx, Kind.INIT, [init.id for init in unfinished], at))
    withdraw_unsent(tx, publisher, [init for init in unfinished if init.id in cancelled], Kind.INIT)
