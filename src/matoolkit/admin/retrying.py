"""A person's retry of failed members (rule O14).

Who failed before anything was undone goes on from there. Whose work was undone, or belongs to a version that is out of
use, begins again in a new epoch.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from matoolkit.admin.recording import locked_batch, record
from matoolkit.domain.batch import PersonRetriedMembers, decide
from matoolkit.domain.keys import folded
from matoolkit.domain.messages import MemberAdded
from matoolkit.domain.states import (
    ENDED_BATCHES,
    UNSUCCESSFUL_STEPS,
    BatchStatus,
    MemberStatus,
    PhaseStatus,
    StepStatus,
)
from matoolkit.errors import NothingToRetry, StillRunning, WrongBatchStatus
from matoolkit.errors.admin import shown
from matoolkit.ids import Kind, asked_for, member_added_id
from matoolkit.ports import Outgoing, Publisher
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow, release_batches, reopen_batches
from matoolkit.store.counts import members_that_failed
from matoolkit.store.members import reactivate_members, restart_members
from matoolkit.store.membership import taken_keys
from matoolkit.store.memberstates import MemberState, member_states
from matoolkit.store.moves import reopen
from matoolkit.store.phases import phases_of_batches, reopen_phases
from matoolkit.store.rollbacks import rollbacks_of_members
from matoolkit.store.runbooks import lock_runbook
from matoolkit.store.steps import current_steps_of_members
from matoolkit.store.working import next_steps_of_members, unfinished_rollbacks_of_members


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which failed members are meant: all, those with certain numbers, or those that failed in a certain way."""

    member_ids: Collection[int] | None = None
    phase_name: str | None = None
    step_name: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class MemberRetry:
    """Who goes on from where it failed, who begins again, and who is left out because another batch has it."""

    batch_id: int
    going_on: tuple[str, ...]
    beginning_again: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    going_on: list[MemberState]
    undone: list[MemberState]
    outdated: list[MemberState]
    left_out: list[MemberState]
    steps: list[int]
    phases: set[int]

    def in_words(self, batch_id: int) -> MemberRetry:
        again = sorted(_keys([*self.undone, *self.outdated]))
        return MemberRetry(batch_id, tuple(_keys(self.going_on)), tuple(again), tuple(_keys(self.left_out)))


def preview_member_retry(store: Store, batch_id: int, chosen: Chosen | None = None) -> MemberRetry:
    """Say what a retry would do, and change nothing."""
    with store.transaction() as tx:
        return _planned(tx, locked_batch(tx, batch_id), chosen or Chosen()).in_words(batch_id)


def retry_members(
    store: Store,
    publisher: Publisher,
    batch_id: int,
    chosen: Chosen | None = None,
    *,
    by: str,
    reason: str | None = None,
) -> MemberRetry:
    """Let failed members try again; their phases and their batch are taken up again."""
    with store.transaction() as tx:
        return retry_members_within(tx, publisher, batch_id, chosen or Chosen(), by, reason)


def retry_members_within(
    tx: Transaction, publisher: Publisher, batch_id: int, chosen: Chosen, by: str, reason: str | None
) -> MemberRetry:
    """Let failed members try again, as part of a larger change."""
    batch, at = locked_batch(tx, batch_id), tx.time()
    lock_runbook(tx, batch.runbook_name)
    plan = _planned(tx, batch, chosen)
    outcome = plan.in_words(batch_id)
    if batch.status in ENDED_BATCHES:
        reopen_batches(tx, [batch_id], BatchStatus.ACTIVE, at)
        # A tick passes by what a person reopened, so nobody else would end a hold that was left from before.
        release_batches(tx, [batch_id])
    reopen(tx, Kind.STEP, plan.steps)
    reopen_phases(tx, plan.phases, at)
    reactivate_members(tx, [member.id for member in plan.going_on])
    restart_members(tx, [member.id for member in plan.undone], at, forget_outputs=True)
    restart_members(tx, [member.id for member in plan.outdated], at, forget_outputs=False)
    after = {"going_on": len(outcome.going_on), "beginning_again": len(outcome.beginning_again)}
    request = record(tx, batch, "batch.retry_members", by, reason, {"status": batch.status}, after)
    again = {member.id for member in (*plan.undone, *plan.outdated)}
    publisher.publish(tx, [_added(member, request, again) for member in _retried(plan)])
    return outcome


def _planned(tx: Transaction, batch: BatchRow, chosen: Chosen) -> _Plan:
    if decide(batch.status, PersonRetriedMembers()).ignored is not None:
        raise WrongBatchStatus(batch.id, batch.status, "members of a batch that is under way or over can be retried")
    failed = _failed_members(tx, batch, chosen)
    folds = {member.id: folded(member.member_key) for member in failed}
    keys = set(folds.values())
    taken = taken_keys(tx, batch.runbook_name, keys, besides=batch.id)
    wanted = [member for member in failed if folds[member.id] not in taken]
    if not wanted:
        raise NothingToRetry(f"batch {batch.id}", f"another batch has {shown(_keys(failed))}")
    _refuse_unsettled(tx, batch, wanted)
    ids = [member.id for member in wanted]
    superseded = {phase.id for phase in phases_of_batches(tx, [batch.id]) if phase.status is PhaseStatus.SUPERSEDED}
    epochs = {member.id: member.epoch for member in wanted}
    undone = {
        rollback.batch_member_id
        for rollback in rollbacks_of_members(tx, ids)
        if rollback.batch_member_id is not None
        and rollback.epoch == epochs[rollback.batch_member_id]
        and rollback.attempt > 0
    }
    steps = [step for step in current_steps_of_members(tx, ids) if step.status in UNSUCCESSFUL_STEPS]
    outdated = {
        step.batch_member_id
        for step in steps
        if step.phase_execution_id in superseded and step.status is not StepStatus.CANCELLED
    } - undone
    open_again = [
        step
        for step in steps
        if step.batch_member_id not in undone | outdated and step.phase_execution_id not in superseded
    ]
    return _Plan(
        [member for member in wanted if member.id not in undone | outdated],
        [member for member in wanted if member.id in undone],
        [member for member in wanted if member.id in outdated],
        [member for member in failed if folds[member.id] in taken],
        [step.id for step in open_again],
        {step.phase_execution_id for step in open_again},
    )


def _failed_members(tx: Transaction, batch: BatchRow, chosen: Chosen) -> list[MemberState]:
    ids: Collection[int] = members_that_failed(
        tx, batch.id, phase_name=chosen.phase_name, step_name=chosen.step_name, error=chosen.error
    )
    if chosen.member_ids is not None:
        ids = set(ids).intersection(chosen.member_ids)
    failed = [member for member in member_states(tx, ids) if member.status is MemberStatus.FAILED]
    if not failed:
        raise NothingToRetry(f"batch {batch.id}", "no member that was asked for has failed")
    return failed


def _refuse_unsettled(tx: Transaction, batch: BatchRow, members: Sequence[MemberState]) -> None:
    keys = {member.id: member.member_key for member in members}
    undoing = {row.batch_member_id for row in unfinished_rollbacks_of_members(tx, keys)}
    if undoing:
        names = [key for number, key in keys.items() if number in undoing]
        raise StillRunning(f"batch {batch.id}", f"the rollback of {shown(names)} has not ended")
    out = {step.batch_member_id for step in next_steps_of_members(tx, keys) if step.is_in_flight}
    if out:
        names = [key for number, key in keys.items() if number in out]
        raise StillRunning(f"batch {batch.id}", f"a job of {shown(names)} is still out")


def _retried(plan: _Plan) -> list[MemberState]:
    return [*plan.going_on, *plan.undone, *plan.outdated]


def _added(member: MemberState, request: int, again: Collection[int]) -> Outgoing:
    first = member_added_id(member.id, member.epoch + (1 if member.id in again else 0))
    return Outgoing(asked_for(first, request), MemberAdded(member.batch_id, member.member_key, member.id))


def _keys(members: Sequence[MemberState]) -> list[str]:
    return [member.member_key for member in members]
