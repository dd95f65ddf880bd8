"""A person's retry of steps that were to undo something and failed (rules O9 and O14)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from matoolkit.admin.queries import existing_batch
from matoolkit.admin.recording import locked_batch, record
from matoolkit.admin.reinitializing import version_that_failed
from matoolkit.announcing.messages import retry_check
from matoolkit.domain.keys import folded
from matoolkit.domain.states import MemberStatus
from matoolkit.domain.undoing import is_done_since
from matoolkit.errors import NothingToRetry
from matoolkit.ids import Kind, asked_for
from matoolkit.ports import Publisher
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow
from matoolkit.store.enrolments import taken_keys
from matoolkit.store.executions import RollbackRow
from matoolkit.store.inits import inits_of_batches
from matoolkit.store.moves import reopen
from matoolkit.store.narrow_members import narrow_members
from matoolkit.store.rollbacks import failed_rollbacks_of_batches
from matoolkit.store.runbooks import lock_runbook
from matoolkit.store.undoing import known_places


@dataclass(frozen=True, slots=True)
class StepsLeftOut:
    """Failed undo steps that are not retried, and why."""

    because: str
    step_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class UndoRetry:
    """Which failed undo steps of a batch are retried, and which are not."""

    batch_id: int
    step_ids: tuple[int, ...]
    left_out: tuple[StepsLeftOut, ...]


def preview_undo_retry(store: Store, batch_id: int, step_ids: Collection[int] | None = None) -> UndoRetry:
    """Say which failed undo steps a retry would send again; nothing is changed."""
    with store.reading() as tx:
        return _planned(tx, existing_batch(tx, batch_id), step_ids)[0]


def retry_undo(
    store: Store,
    publisher: Publisher,
    batch_id: int,
    step_ids: Collection[int] | None = None,
    *,
    by: str,
    reason: str | None = None,
) -> UndoRetry:
    """Send failed undo steps of a batch again, all or some, each when its turn comes. The batch may have ended."""
    with store.transaction() as tx:
        batch = locked_batch(tx, batch_id)
        lock_runbook(tx, batch.runbook_name)
        planned, rows = _planned(tx, batch, step_ids)
        if not planned.step_ids:
            raise NothingToRetry(f"batch {batch_id}", planned.left_out[0].because)
        # Written only for those that the guards let through: a job of the step may still be out (rule M3).
        again = reopen(tx, Kind.ROLLBACK, planned.step_ids)
        before, after = {"status": batch.status}, {"undo_steps": again}
        request = record(tx, batch, "batch.retry_undo", by, reason, before, after)
        checks = [retry_check(Kind.ROLLBACK, number, rows[number].attempt) for number in again]
        publisher.publish(tx, [replace(one, message_id=asked_for(one.message_id, request)) for one in checks])
        return replace(planned, step_ids=tuple(again))


def reasons_against(tx: Transaction, batch: BatchRow, rollbacks: Sequence[RollbackRow]) -> dict[int, str]:
    """Say which compensating steps may not run again: their member or init has begun again, or is busy (T5, O9)."""
    mine = narrow_members(tx, {row.batch_member_id for row in rollbacks if row.batch_member_id is not None})
    members = {member.id: member for member in mine}
    folds = {member.id: folded(member.member_key) for member in mine}
    taken = taken_keys(tx, batch.runbook_name, set(folds.values()))
    places = known_places(tx, batch.runbook_name, set(folds.values()))
    inits = inits_of_batches(tx, [batch.id]) if any(row.batch_member_id is None for row in rollbacks) else []
    failed_version = version_that_failed(inits) if inits else None
    found: dict[int, str] = {}
    for row in rollbacks:
        if row.batch_member_id is None:
            if failed_version != row.runbook_version:
                found[row.id] = "its init has begun again since"
            continue
        member = members[row.batch_member_id]
        if member.status is MemberStatus.ACTIVE or member.epoch != row.epoch:
            found[row.id] = f"{member.member_key} has begun again since"
        elif folds[member.id] in taken:
            found[row.id] = f"something else is under way for {member.member_key}"
        elif is_done_since(member.id, places[folds[member.id]]):
            found[row.id] = f"{member.member_key} is done in a later batch"
    return found


def _planned(
    tx: Transaction, batch: BatchRow, step_ids: Collection[int] | None
) -> tuple[UndoRetry, Mapping[int, RollbackRow]]:
    failed = failed_rollbacks_of_batches(tx, [batch.id])
    rows = {row.id: row for row in failed if step_ids is None or row.id in step_ids}
    if not rows:
        raise NothingToRetry(f"batch {batch.id}", "no undo step that was asked for has failed")
    against = reasons_against(tx, batch, list(rows.values()))
    against |= {row.id: "its job is still out" for row in rows.values() if row.is_in_flight}
    groups: dict[str, list[int]] = {}
    for number in sorted(against):
        groups.setdefault(against[number], []).append(number)
    left_out = tuple(StepsLeftOut(because, tuple(ids)) for because, ids in groups.items())
    return UndoRetry(batch.id, tuple(sorted(rows.keys() - against.keys())), left_out), rows
