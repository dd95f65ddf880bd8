"""Plans a person's undo: which version's steps run for whom, for whom nothing does, who is left out (rule U2)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from matoolkit.domain.keys import folded
from matoolkit.domain.retrying import VersionChoice
from matoolkit.domain.states import EXCLUDED, MemberState, MemberStatus
from matoolkit.domain.undoing import (
    KnownPlace,
    LeaveOut,
    NothingToRun,
    NotUndoneBecause,
    Undo,
    Undoable,
    decide_undo,
    has_work,
    is_done_since,
)
from matoolkit.errors import NoActiveVersion, NothingToUndo, UnknownMembers
from matoolkit.errors.admin import shown
from matoolkit.runbook.model import Step
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Transaction
from matoolkit.store.batches import BatchRow
from matoolkit.store.enrolments import taken_keys
from matoolkit.store.failures import members_that_failed
from matoolkit.store.runbooks import RunbookRow, active_runbook, runbooks_by_id
from matoolkit.store.undoing import UndoableMember, known_places, undoable_members


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whom a person wants to undo: everybody, those with certain keys, or those that failed in a certain way."""

    member_keys: Collection[str] | None = None
    state: MemberState | None = None
    phase_name: str | None = None
    step_name: str | None = None
    error: str | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """Which version's steps run, for whom something runs or nothing, and who is left out and why."""

    version: RunbookRow
    active: RunbookRow | None
    steps: Sequence[Step]
    undone: Sequence[tuple[UndoableMember, Undo]]
    left_out: Mapping[NotUndoneBecause, Sequence[UndoableMember]]

    @property
    def running(self) -> list[UndoableMember]:
        """Those for whom steps run."""
        return [member for member, way in self.undone if way.nothing_because is None]

    @property
    def rolled_back(self) -> list[UndoableMember]:
        """Those for whom a rollback has run already."""
        return [member for member, way in self.undone if way.was_rolled_back]

    @property
    def nothing_to_run(self) -> dict[NothingToRun, list[UndoableMember]]:
        """Those for whom nothing runs, by the reason."""
        found: dict[NothingToRun, list[UndoableMember]] = {}
        for member, way in self.undone:
            if way.nothing_because is not None:
                found.setdefault(way.nothing_because, []).append(member)
        return found


def plan_undo(tx: Transaction, batch: BatchRow, wanted: Wanted, version: VersionChoice | None) -> UndoPlan:
    """Decide what an undo does; it is an error if nobody can be undone. Batch and runbook are locked."""
    runs, active = _version(tx, batch, version)
    steps = parse_runbook(runs.yaml_content).on_member_removed
    undone: list[tuple[UndoableMember, Undo]] = []
    left_out: dict[NotUndoneBecause, list[UndoableMember]] = {}
    for member, known in _known(tx, batch, _members(tx, batch, wanted)):
        match decide_undo(known, has_steps=bool(steps)):
            case LeaveOut(because):
                left_out.setdefault(because, []).append(member)
            case Undo() as way:
                undone.append((member, way))
    if not undone:
        raise NothingToUndo(batch.id, _why_nobody(left_out))
    return UndoPlan(runs, active, steps, undone, left_out)


def keys_of(members: Sequence[UndoableMember]) -> tuple[str, ...]:
    """Return the keys of members."""
    return tuple(member.member_key for member in members)


def _version(tx: Transaction, batch: BatchRow, choice: VersionChoice | None) -> tuple[RunbookRow, RunbookRow | None]:
    """Return the version that the batch follows, or the active one if a person says so, and the active one."""
    active = active_runbook(tx, batch.runbook_name)
    if choice is not VersionChoice.ACTIVE:
        return runbooks_by_id(tx, [batch.runbook_id])[0], active
    if active is None:
        raise NoActiveVersion(batch.runbook_name)
    return active, active


def _members(tx: Transaction, batch: BatchRow, wanted: Wanted) -> list[UndoableMember]:
    """Return the members that were asked for; those that left only if they were named."""
    members = undoable_members(tx, batch.id)
    if wanted.member_keys is not None:
        named = {folded(key.strip()): key for key in wanted.member_keys}
        members = [member for member in members if member.member_key_fold in named]
        if missing := set(named) - {member.member_key_fold for member in members}:
            raise UnknownMembers(batch.id, sorted(named[fold] for fold in missing), "such")
    else:
        members = [member for member in members if member.status is not MemberStatus.REMOVED]
    if wanted.state is not None:
        members = [member for member in members if _is_in(member, wanted.state)]
    how = {name: getattr(wanted, name) for name in ("phase_name", "step_name", "error", "fingerprint")}
    if any(value is not None for value in how.values()):
        failed = set(members_that_failed(tx, batch.id, **how))
        members = [member for member in members if member.id in failed]
    return members


def _is_in(member: UndoableMember, state: MemberState) -> bool:
    # Somebody who has failed and is being rolled back is left out, and that is shown.
    has_failed = state is MemberState.FAILED and member.status is MemberStatus.FAILED
    return has_failed or member.state is state


def _known(
    tx: Transaction, batch: BatchRow, members: Sequence[UndoableMember]
) -> list[tuple[UndoableMember, Undoable]]:
    folds = {member.member_key_fold for member in members}
    taken = taken_keys(tx, batch.runbook_name, folds, besides=batch.id)
    places = known_places(tx, batch.runbook_name, folds)
    return [(member, _undoable(member, taken, places[member.member_key_fold])) for member in members]


def _undoable(member: UndoableMember, taken: Collection[str], places: Sequence[KnownPlace]) -> Undoable:
    return Undoable(
        member.status,
        is_undone=member.undone_at is not None,
        is_excluded=member.remove_reason == EXCLUDED,
        is_rolling_back=member.is_rolling_back,
        was_rolled_back=member.was_rolled_back,
        has_done=has_work(member.id, places),
        is_elsewhere=member.member_key_fold in taken,
        is_done_since=is_done_since(member.id, places),
    )


_IN_WORDS = {
    NotUndoneBecause.UNDONE_BEFORE: "{} was undone before",
    NotUndoneBecause.LEFT: "{} has left",
    NotUndoneBecause.ROLLBACK_RUNS: "the rollback of {} has not ended",
    NotUndoneBecause.IN_ANOTHER_BATCH: "another batch has {}",
    NotUndoneBecause.DONE_SINCE: "{} is done in a later batch",
}


def _why_nobody(left_out: Mapping[NotUndoneBecause, Sequence[UndoableMember]]) -> str:
    words = [_IN_WORDS[because].format(shown(keys_of(members))) for because, members in left_out.items()]
    return "; ".join(words) or "no active or failed member was asked for"
