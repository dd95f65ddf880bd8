"""A person's retry of failed members (rule O14).

The version that runs is the one that the batch follows. A member that failed under it, with nothing undone, goes on
from there. The others begin again in a new epoch, with the first phase of that version that they have not completed.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from matoolkit.admin.recording import locked_batch, record
from matoolkit.admin.retrychanges import ChangedColumn, DoneBefore, by_column
from matoolkit.admin.retryplan import Chosen, Plan, Terms, keys_of, plan_retry
from matoolkit.announcing.following import change_phases
from matoolkit.announcing.members import announce_retried, stop_excluded
from matoolkit.domain.retrying import BeginAgain, DataChoice, LeftOutBecause
from matoolkit.domain.states import ENDED_BATCHES
from matoolkit.errors import DoneWithOldData
from matoolkit.ids import Kind
from matoolkit.ports import Publisher
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow, reopen_batches, take_version
from matoolkit.store.holds import release_batches
from matoolkit.store.members import Refresh, Restart, reactivate_members, refresh_members, restart_members
from matoolkit.store.moves import reopen
from matoolkit.store.narrow_members import NarrowMember
from matoolkit.store.phases import reopen_phases
from matoolkit.store.runbooks import lock_runbook

_ANYBODY, _AS_IT_IS = Chosen(), Terms()


@dataclass(frozen=True, slots=True)
class Beginning:
    """Members that begin again with the same phase; without one there is nothing left for them to do."""

    phase_name: str | None
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Members that are not retried for the same reason."""

    because: LeftOutBecause
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemberRetry:
    """Which version runs, which members go on, which begin again and where, and which are left out and why.

    Members take their row as it was at `read_at`: these columns change, and these steps were done with the old values.
    """

    batch_id: int
    version: int
    active_version: int | None
    going_on: tuple[str, ...]
    beginning_again: tuple[str, ...]
    beginnings: tuple[Beginning, ...]
    left_out: tuple[str, ...]
    left_out_because: tuple[LeftOut, ...]
    data: DataChoice
    read_at: datetime | None
    changed_columns: tuple[ChangedColumn, ...]
    done_before: tuple[DoneBefore, ...]


def preview_member_retry(
    store: Store, batch_id: int, chosen: Chosen = _ANYBODY, terms: Terms = _AS_IT_IS
) -> MemberRetry:
    """Say what a retry would do, and change nothing."""
    with store.transaction() as tx:
        return _in_words(batch_id, plan_retry(tx, locked_batch(tx, batch_id), chosen, terms))


def retry_members(
    store: Store,
    publisher: Publisher,
    batch_id: int,
    chosen: Chosen = _ANYBODY,
    terms: Terms = _AS_IT_IS,
    *,
    by: str,
    reason: str | None = None,
) -> MemberRetry:
    """Let failed members try again; their phases and their batch are taken up again."""
    with store.transaction() as tx:
        return retry_members_within(tx, publisher, batch_id, chosen, terms, by, reason)


def retry_members_within(
    tx: Transaction, publisher: Publisher, batch_id: int, chosen: Chosen, terms: Terms, by: str, reason: str | None
) -> MemberRetry:
    """Let failed members try again, as part of a larger change."""
    batch = locked_batch(tx, batch_id)
    lock_runbook(tx, batch.runbook_name)
    plan = plan_retry(tx, batch, chosen, terms)
    outcome = _in_words(batch_id, plan)
    if plan.done_before and not terms.keep_done and terms.begin_with is None:
        steps = [f"{one.phase_name}/{one.step_name}" for one in plan.done_before]
        columns = sorted({column for one in plan.done_before for column in one.columns})
        raise DoneWithOldData(batch_id, steps, columns)
    _take_up(tx, publisher, batch, plan, by)
    _let_try_again(tx, plan)
    after = {
        "version": outcome.version,
        "going_on": len(outcome.going_on),
        "beginning_again": len(outcome.beginning_again),
        "data": outcome.data,
        "changed_columns": [column.name for column in outcome.changed_columns],
    }
    request = record(tx, batch, "batch.retry_members", by, reason, {"status": batch.status}, after)
    announce_retried(tx, publisher, _in_their_epochs(plan), request)
    return outcome


def _take_up(tx: Transaction, publisher: Publisher, batch: BatchRow, plan: Plan, by: str) -> None:
    """Reopen a batch that had ended, and let it take the version that runs."""
    at, runs = tx.time(), plan.runs
    if batch.status in ENDED_BATCHES:
        reopen_batches(tx, [batch.id], at)
        # A tick leaves a reopened batch alone, so nothing else would end an old hold.
        release_batches(tx, [batch.id], at, by)
        stop_excluded(tx, publisher, batch, by, at)
    if runs.transition is not None:
        take_version(tx, batch.id, runs.row.id)
        change_phases(tx, publisher, runs.row.version, [runs.transition], at)


def _let_try_again(tx: Transaction, plan: Plan) -> None:
    at = tx.time()
    reopen(tx, Kind.STEP, [step.id for step in plan.steps])
    reopen_phases(tx, {step.phase_execution_id for step in plan.steps}, at)
    reactivate_members(tx, [member.id for member in plan.going_on])
    version = plan.runs.row.version
    undone = [Restart(member.id) for member, way in plan.again if way.is_undone]
    others = [_restart(member, way, version) for member, way in plan.again if not way.is_undone]
    restart_members(tx, undone, at, forget_outputs=True)
    restart_members(tx, others, at, forget_outputs=False)
    refresh_members(tx, [Refresh(one.member.id, one.row.data_json, one.row.data_hash) for one in plan.changes])


def _restart(member: NarrowMember, way: BeginAgain, version: int) -> Restart:
    return Restart(member.id, version, way.place) if way.place else Restart(member.id)


def _in_words(batch_id: int, plan: Plan) -> MemberRetry:
    names = plan.runs.phase_names
    groups: dict[int, list[NarrowMember]] = {}
    for member, way in plan.again:
        groups.setdefault(way.place, []).append(member)
    return MemberRetry(
        batch_id,
        plan.runs.row.version,
        plan.runs.active.version if plan.runs.active else None,
        tuple(keys_of(plan.going_on)),
        tuple(sorted(keys_of([member for member, _ in plan.again]))),
        tuple(
            Beginning(names[place] if place < len(names) else None, tuple(keys_of(members)))
            for place, members in sorted(groups.items())
        ),
        tuple(key for members in plan.left_out.values() for key in keys_of(members)),
        tuple(LeftOut(because, tuple(keys_of(members))) for because, members in plan.left_out.items()),
        plan.rows.choice if plan.rows else DataChoice.KEPT,
        plan.rows.read_at if plan.rows else None,
        by_column(plan.changes),
        tuple(plan.done_before),
    )


def _in_their_epochs(plan: Plan) -> list[NarrowMember]:
    """Return the retried members; those that begin again were read before they got a new epoch."""
    again = {member.id for member, _ in plan.again}
    return [replace(one, epoch=one.epoch + 1) if one.id in again else one for one in plan.members]
