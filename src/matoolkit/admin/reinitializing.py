"""A person's retry of an init that failed (rules O1, O14 and V2 to V5)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from matoolkit.admin.queries import existing_batch
from matoolkit.admin.recording import locked_batch, record
from matoolkit.announcing.following import change_phases
from matoolkit.announcing.inits import request_inits
from matoolkit.announcing.members import stop_excluded
from matoolkit.announcing.waking import activate_and_wake
from matoolkit.domain.batch import INIT_CAN_BE_RETRIED
from matoolkit.domain.keys import folded
from matoolkit.domain.states import ENDED_STEPS, FAILED_STEPS, MOVED, BatchStatus
from matoolkit.domain.transitions import TargetVersion, transition
from matoolkit.errors import NothingToRetry, StillRunning, WrongBatchStatus
from matoolkit.ids import Kind
from matoolkit.ports import Publisher
from matoolkit.runbook.model import Runbook
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import (
    BatchRow,
    dispatch_init,
    follow_version,
    reopen_inits,
)
from matoolkit.store.enrolments import taken_keys
from matoolkit.store.executions import InitRow
from matoolkit.store.holds import release_batches
from matoolkit.store.inflight import batches_in_flight
from matoolkit.store.inits import inits_of_batches, note_requested
from matoolkit.store.members import remove_members
from matoolkit.store.moves import reopen, repeat
from matoolkit.store.narrow_members import NarrowMember, active_members
from matoolkit.store.rollbacks import rollbacks_of_batches
from matoolkit.store.runbooks import RunbookRow, active_runbook, lock_runbook, runbooks_by_id


@dataclass(frozen=True, slots=True)
class InitRetry:
    """The version whose init runs again, and the members that are left out because another batch has them."""

    batch_id: int
    version: int
    left_out: tuple[str, ...] = ()


def retry_init(store: Store, publisher: Publisher, batch_id: int, *, by: str, reason: str | None = None) -> InitRetry:
    """Run the failed init of a batch again, under the active version; the batch has failed or is held for its init."""
    with store.transaction() as tx:
        return retry_init_within(tx, publisher, batch_id, by, reason)


def preview_init_retry(store: Store, batch_id: int) -> InitRetry:
    """Say which version's init would run again, and who would be left out; nothing is changed."""
    with store.reading() as tx:
        batch = existing_batch(tx, batch_id)
        _require_retryable(batch)
        _refuse_unsettled(tx, batch, inits_of_batches(tx, [batch_id]))
        keys = tuple(member.member_key for member in _taken(tx, batch))
        return InitRetry(batch_id, _version_to_run(tx, batch).version, keys)


def retry_init_within(tx: Transaction, publisher: Publisher, batch_id: int, by: str, reason: str | None) -> InitRetry:
    """Run the init of a batch again, as part of a larger change."""
    batch = locked_batch(tx, batch_id)
    lock_runbook(tx, batch.runbook_name)
    _require_retryable(batch)
    inits = inits_of_batches(tx, [batch_id])
    _refuse_unsettled(tx, batch, inits)
    version = _version_to_run(tx, batch)
    left_out = _leave_out(tx, batch, by)
    if batch.status is BatchStatus.FAILED:
        reopen_inits(tx, [batch_id])
        stop_excluded(tx, publisher, batch, by, tx.time())
    release_batches(tx, [batch_id], tx.time(), by)
    model = parse_runbook(version.yaml_content)
    if version.id != batch.runbook_id:
        _take_version(tx, publisher, batch, version, model)
    _reopen(tx, batch, [init for init in inits if init.runbook_version == version.version])
    record(tx, batch, "batch.retry_init", by, reason, {"status": batch.status}, {"version": version.version})
    if model.init:
        request_inits(tx, publisher, version.version, [batch], tx.time())
    else:
        # It counts as an init, so that what waited is told of under new ids.
        dispatch_init(tx, [batch_id], tx.time())
        activate_and_wake(tx, publisher, [batch_id])
    return InitRetry(batch_id, version.version, left_out)


def version_that_failed(inits: Sequence[InitRow]) -> int | None:
    """Return the version of a batch's latest init if that has failed."""
    latest = max((init.runbook_version for init in inits), default=None)
    return latest if any(init.status in FAILED_STEPS for init in inits if init.runbook_version == latest) else None


def _require_retryable(batch: BatchRow) -> None:
    if batch.status not in INIT_CAN_BE_RETRIED:
        raise WrongBatchStatus(batch.id, batch.status, "only an init that failed can be retried")


def _refuse_unsettled(tx: Transaction, batch: BatchRow, inits: list[InitRow]) -> None:
    if version_that_failed(inits) is None:
        raise NothingToRetry(f"batch {batch.id}", "its init has not failed")
    if any(init.is_in_flight for init in inits):
        raise StillRunning(f"the init of batch {batch.id}", "a job of it is still out")
    undoing = [row for row in rollbacks_of_batches(tx, [batch.id]) if row.batch_member_id is None]
    if any(row.status not in ENDED_STEPS for row in undoing):
        raise StillRunning(f"the init of batch {batch.id}", "its rollback has not ended")


def _leave_out(tx: Transaction, batch: BatchRow, by: str) -> tuple[str, ...]:
    """Remove members that another batch took since, or for which another batch still runs something (T5)."""
    gone = _taken(tx, batch)
    remove_members(tx, [member.id for member in gone], by, MOVED, tx.time())
    return tuple(member.member_key for member in gone)


def _taken(tx: Transaction, batch: BatchRow) -> list[NarrowMember]:
    active = {folded(member.member_key): member for member in active_members(tx, batch.id)}
    taken = taken_keys(tx, batch.runbook_name, active, besides=batch.id)
    return [member for fold, member in active.items() if fold in taken]


def _version_to_run(tx: Transaction, batch: BatchRow) -> RunbookRow:
    own = runbooks_by_id(tx, [batch.runbook_id])[0]
    return own if batch.is_manual else active_runbook(tx, batch.runbook_name) or own


def _take_version(tx: Transaction, publisher: Publisher, batch: BatchRow, version: RunbookRow, model: Runbook) -> None:
    """Let a batch follow the active version as it was published; its init runs in any case."""
    (now,) = batches_in_flight(tx, [batch], version.id)
    ready = replace(now, status=BatchStatus.INIT_DISPATCHED, is_held=False)
    target = TargetVersion(version.version, model, version.overdue_behavior, rerun_init=True)
    follow_version(tx, [batch.id], version.id)
    change_phases(tx, publisher, version.version, [transition(ready, target, tx.time())], tx.time())


def _reopen(tx: Transaction, batch: BatchRow, inits: list[InitRow]) -> None:
    """Reopen the failed steps; if a rollback undid the rest, all steps."""
    ids = {init.id for init in inits}
    was_undone = any(row.init_execution_id in ids and row.attempt > 0 for row in rollbacks_of_batches(tx, [batch.id]))
    (repeat if was_undone else reopen)(tx, Kind.INIT, ids)
    note_requested(tx, ids, batch.init_count + 1)
