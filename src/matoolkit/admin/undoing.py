"""A person undoes members of a batch, in any status of it (rule U2).

They leave with a mark: their removal steps run, tracked as those of any removal, and the source does not bring them
back at that time. A batch that had ended stays ended.
"""

from dataclasses import dataclass

from matoolkit.admin.recording import locked_batch, record
from matoolkit.admin.undoplan import UndoPlan, Wanted, keys_of, plan_undo
from matoolkit.announcing.members import undo_and_announce
from matoolkit.domain.batch import decide_after_undo
from matoolkit.domain.moves import Ignore
from matoolkit.domain.retrying import VersionChoice
from matoolkit.domain.states import BatchStatus
from matoolkit.domain.undoing import NothingToRun, NotUndoneBecause
from matoolkit.ports import Publisher
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow, move_batches
from matoolkit.store.counts import member_counts
from matoolkit.store.runbooks import lock_runbook
from matoolkit.store.undoing import UndoneMember

_EVERYBODY = Wanted()
_UNDONE = "undone by a person"


@dataclass(frozen=True, slots=True)
class StepToRun:
    """A step that runs for those who are undone."""

    name: str
    function: str


@dataclass(frozen=True, slots=True)
class NothingRuns:
    """Members that are undone and for whom nothing runs, for the same reason."""

    because: NothingToRun
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotUndone:
    """Members that are left out for the same reason."""

    because: NotUndoneBecause
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemberUndo:
    """Which steps of which version run for whom, for whom nothing runs, and who is left out.

    `rolled_back` are undone although a rollback has undone some of their work already.
    """

    batch_id: int
    batch_status: BatchStatus
    version: int
    active_version: int | None
    steps: tuple[StepToRun, ...]
    running: tuple[str, ...]
    nothing_to_run: tuple[NothingRuns, ...]
    rolled_back: tuple[str, ...]
    left_out: tuple[NotUndone, ...]

    @property
    def undone(self) -> int:
        """How many are undone."""
        return len(self.running) + sum(len(group.members) for group in self.nothing_to_run)


def preview_undo(
    store: Store, batch_id: int, wanted: Wanted = _EVERYBODY, version: VersionChoice | None = None
) -> MemberUndo:
    """Say what an undo would do, and change nothing."""
    with store.transaction() as tx:
        batch = _locked(tx, batch_id)
        return in_words(batch, plan_undo(tx, batch, wanted, version))


def undo_members(
    store: Store,
    publisher: Publisher,
    batch_id: int,
    wanted: Wanted = _EVERYBODY,
    version: VersionChoice | None = None,
    *,
    by: str,
    reason: str,
) -> MemberUndo:
    """Undo members of a batch: their work stops, and the steps of `on_member_removed` run for them."""
    with store.transaction() as tx:
        batch = _locked(tx, batch_id)
        return undo_as_planned(tx, publisher, batch, plan_undo(tx, batch, wanted, version), by=by, reason=reason)


def undo_as_planned(
    tx: Transaction, publisher: Publisher, batch: BatchRow, plan: UndoPlan, *, by: str, reason: str
) -> MemberUndo:
    """Undo members of a batch, as part of a larger change; batch and runbook are locked since it was planned."""
    outcome = in_words(batch, plan)
    after = {"version": outcome.version, "members": outcome.undone, "running": len(outcome.running)}
    request = record(tx, batch, "batch.undo", by, reason, {"status": batch.status}, after)
    number, why = plan.version.version, f"{_UNDONE}: {reason}"
    undone = [
        UndoneMember(member.id, member.epoch, None if way.nothing_because else number, by, why)
        for member, way in plan.undone
    ]
    undo_and_announce(tx, publisher, undone, request, tx.time())
    _judge_ended(tx, batch)
    return outcome


def _judge_ended(tx: Transaction, batch: BatchRow) -> None:
    """Let a batch that had ended no longer read as completed if nobody is left for whom it was."""
    move = decide_after_undo(batch.status, [count.status for count in member_counts(tx, [batch.id])])
    if not isinstance(move, Ignore):
        move_batches(tx, move, [batch.id], tx.time())


def _locked(tx: Transaction, batch_id: int) -> BatchRow:
    batch = locked_batch(tx, batch_id)
    # Nobody who is undone here joins another batch at the same moment.
    lock_runbook(tx, batch.runbook_name)
    return batch


def in_words(batch: BatchRow, plan: UndoPlan) -> MemberUndo:
    """Say which steps run for whom, for whom nothing runs, and who is left out."""
    return MemberUndo(
        batch.id,
        batch.status,
        plan.version.version,
        plan.active.version if plan.active else None,
        tuple(StepToRun(step.name, step.function) for step in plan.steps),
        keys_of(plan.running),
        tuple(NothingRuns(because, keys_of(members)) for because, members in plan.nothing_to_run.items()),
        keys_of(plan.rolled_back),
        tuple(NotUndone(because, keys_of(members)) for because, members in plan.left_out.items()),
    )
