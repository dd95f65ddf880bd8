"""Inits that were not approved in time: they wait for a person, like a phase that is late (rule S7)."""

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from matoolkit.announcing.signoffs import sign_offs_of_inits
from matoolkit.announcing.versions import readable_runbooks
from matoolkit.domain.signoff import SignOffs
from matoolkit.domain.states import BatchStatus
from matoolkit.runbook.model import Runbook
from matoolkit.scheduler.leasing import Confirm
from matoolkit.store import Store
from matoolkit.store.batches import NarrowBatch, lock_narrow_batches
from matoolkit.store.gatekeeping import open_gates
from matoolkit.store.inits import batches_before_init, begun_inits, latest_init_versions
from matoolkit.store.lateness import LateInit, NewLateInit, late_inits, shut_late_inits
from matoolkit.store.runbooks import runbooks_by_id
from matoolkit.store.sql.transaction import Transaction

log = logging.getLogger(__name__)


def look_after_late_inits(store: Store, confirm: Confirm) -> int:
    """Shut a gate for each init whose time to be signed off has ended, and return how many were shut.

    It opens by itself when the batch has another T, or an init that is not late.
    """
    with store.reading() as tx:
        seen = _look(tx, batches_before_init(tx))
    if not (seen.over or seen.late):
        return 0
    with store.transaction() as tx:
        confirm(tx)
        # Asked again under the lock: somebody may have signed since.
        touched = {one.batch_id for one in seen.late} | {gate.batch_id for gate in seen.over}
        seen = _look(tx, lock_narrow_batches(tx, touched))
        open_gates(tx, [gate.id for gate in seen.over], tx.time(), "system", "its init is not late any more")
        shut_late_inits(tx, seen.late, tx.time())
    for one in seen.late:
        log.warning("late, and waits for a person: %s", one.reason, extra={"batch": one.batch_id})
    return len(seen.late)


@dataclass(frozen=True, slots=True)
class _Seen:
    """Inits that have become late, and shut gates that stand for nothing any more."""

    late: Sequence[NewLateInit]
    over: Sequence[LateInit]


def _look(tx: Transaction, batches: Collection[NarrowBatch]) -> _Seen:
    """Compare which inits are late with the gates that are shut for them."""
    known = {batch.id: batch for batch in batches if batch.status is BatchStatus.INIT_DISPATCHED}
    inits = {batch.id: (batch, version, runbook) for batch, version, runbook in _inits(tx, known.values())}
    asked = sign_offs_of_inits(tx, inits.values(), tx.time())
    late = {number for number, one in asked.items() if one.is_over and not one.is_met}
    begun = begun_inits(tx, late)
    late -= {number for number in late if (number, inits[number][1], known[number].init_count) in begun}
    shut = late_inits(tx)
    over = [gate for gate in shut if gate.is_over or (gate.batch_id in inits and gate.batch_id not in late)]
    standing = {gate.batch_id for gate in shut} - {gate.batch_id for gate in over}
    new = [NewLateInit(number, asked[number].start, _told(asked[number])) for number in sorted(late - standing)]
    return _Seen(new, over)


def _inits(tx: Transaction, batches: Collection[NarrowBatch]) -> Iterator[tuple[NarrowBatch, int, Runbook]]:
    """Return the versions whose inits batches go through: an unfinished one goes on under its own (rule V5)."""
    newest = latest_init_versions(tx, [batch.id for batch in batches])
    followed = {row.id: row.version for row in runbooks_by_id(tx, {batch.runbook_id for batch in batches})}
    wanted = {batch: newest.get(batch.id, followed[batch.runbook_id]) for batch in batches}
    known = readable_runbooks(tx, {(batch.runbook_name, version) for batch, version in wanted.items()})
    for batch, version in wanted.items():
        if (runbook := known.get((batch.runbook_name, version))) is not None:
            yield batch, version, runbook


def _told(asked: SignOffs) -> str:
    return f"init was not approved until {asked.ends_at:%Y-%m-%d %H:%M} UTC: {asked.progress()}"
