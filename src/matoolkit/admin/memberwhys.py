"""What members wait for, asked of what decides about them (rules X1 and X2)."""

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from matoolkit.admin.batchwhys import BatchWhys, on_its_way, told_of
from matoolkit.admin.scene import Scene
from matoolkit.announcing.places import holders_of
from matoolkit.announcing.situations import situation_of, unexpanded_before
from matoolkit.domain.doors import Door
from matoolkit.domain.explaining import Idle, Ready, WorkKey, WorkTold, what_keeps, without_repeats
from matoolkit.domain.gates import why_of
from matoolkit.domain.keys import folded
from matoolkit.domain.progress import Situation
from matoolkit.domain.retrying import first_phase
from matoolkit.domain.signoff import will_wait
from matoolkit.domain.states import MOVED, UNFINISHED_BATCHES, BatchStatus, MemberStatus
from matoolkit.domain.why import EndedBy, Why, WhyKind
from matoolkit.ids import Kind
from matoolkit.store import Transaction
from matoolkit.store.executions import rollbacks_by_id, steps_by_id
from matoolkit.store.members import MemberRow, members_by_id
from matoolkit.store.narrow_executions import (
    NextStep,
    RollbackState,
    next_steps_of_members,
    unfinished_rollbacks_of_members,
)
from matoolkit.store.narrow_members import members_in_full
from matoolkit.store.phases import PhaseRow
from matoolkit.store.steps import members_in_phases

OpenT = TypeVar("OpenT", NextStep, RollbackState)


@dataclass(frozen=True, slots=True)
class MemberWhys:
    """For what a member waits, and the phase that it is about; one that is not there any more waits for nothing."""

    member: MemberRow
    whys: Sequence[Why]
    phase: PhaseRow | None = None
    is_open: bool = True


def whys_of_members(
    tx: Transaction, scene: Scene, of_batches: BatchWhys, member_ids: Collection[int]
) -> dict[int, MemberWhys]:
    """Say what members of a scene's batches wait for, all read together."""
    steps = _by_member(next_steps_of_members(tx, member_ids))
    rollbacks = _by_member(unfinished_rollbacks_of_members(tx, member_ids))
    told = _told(tx, scene, steps, rollbacks)
    opened = [step for mine in steps.values() for step in mine if step.phase_execution_id in scene.doors]
    holders = holders_of(tx, scene.doors, opened)
    rows = {row.id: row for row in members_by_id(tx, member_ids)}
    found: dict[int, MemberWhys] = {}
    # What decides about members has them in full, so what explains them does too.
    for member in members_in_full(tx, member_ids):
        mine, undoing = steps.get(member.id, []), rollbacks.get(member.id, [])
        places = {step.phase_execution_id for step in mine if holders.has_place(step)}
        batch = scene.batches[member.batch_id]
        situation = situation_of(batch, member, scene.gates, mine, undoing, scene.doors, places)
        one = _OneMember(tx, scene, of_batches, rows[member.id], situation, mine, undoing)
        found[member.id] = one.explained(told)
    return found


def _told(
    tx: Transaction,
    scene: Scene,
    steps: Mapping[int, Sequence[NextStep]],
    rollbacks: Mapping[int, Sequence[RollbackState]],
) -> dict[WorkKey, WorkTold]:
    names = {phase.id: phase.phase_name for mine in scene.phases.values() for phase in mine}
    told: dict[WorkKey, WorkTold] = {}
    for step in steps_by_id(tx, [one.id for mine in steps.values() for one in mine]):
        work = told_of(step, what=f"{names[step.phase_execution_id]}/{step.step_name}")
        told[False, step.id] = _in_phase(work, scene, step.phase_execution_id)
    for row in rollbacks_by_id(tx, [one.id for mine in rollbacks.values() for one in mine]):
        told[True, row.id] = told_of(row, what=f"{row.sequence_name}/{row.step_name}, which undoes what was done,")
    return told


def _in_phase(work: WorkTold, scene: Scene, phase_id: int) -> WorkTold:
    return replace(work, phase=scene.doors.get(phase_id))


class _OneMember:
    def __init__(
        self,
        tx: Transaction,
        scene: Scene,
        of_batches: BatchWhys,
        member: MemberRow,
        situation: Situation,
        steps: Sequence[NextStep],
        rollbacks: Sequence[RollbackState],
    ) -> None:
        self._tx, self._scene, self._of_batches, self._member = tx, scene, of_batches, member
        self._batch = scene.batches[member.batch_id]
        self._situation, self._steps, self._rollbacks = situation, steps, rollbacks

    def explained(self, told: Mapping[WorkKey, WorkTold]) -> MemberWhys:
        """Say what it waits for."""
        if self._is_leaving and not self._rollbacks and not any(step.is_in_flight for step in self._steps):
            return self._answer([self._leaving()])
        match what_keeps(self._situation, told):
            case Idle():
                return self._idle()
            case Ready(key):
                return self._answer(self._ready(key), self._phase_of(key))
            case whys:
                is_open = any(why.kind is not WhyKind.ENDED for why in whys)
                found = whys if is_open else [self._ended(why) for why in whys]
                return self._answer(without_repeats(found), self._phase_of_whys(whys), is_open=is_open)

    def _answer(self, whys: Iterable[Why], phase: PhaseRow | None = None, *, is_open: bool = True) -> MemberWhys:
        return MemberWhys(self._member, self._of_batches.with_approval(self._batch, list(whys)), phase, is_open)

    @property
    def _is_leaving(self) -> bool:
        one = self._member
        has_left = one.status is MemberStatus.REMOVED and one.removed_at is not None and one.remove_reason != MOVED
        return has_left and one.seen_off_at is None

    def _leaving(self) -> Why:
        told = f"it has left: {self._member.remove_reason or 'no reason is known'}; what is to be undone is looked for"
        return Why(WhyKind.UNDO, told, self._member.removed_at)

    def _ended(self, why: Why) -> Why:
        """Say why nothing more happens by itself for a member, and what a person can do."""
        one, batch = self._member, self._batch
        if one.status is MemberStatus.REMOVED:
            return Why(WhyKind.ENDED, f"it has left: {one.remove_reason or 'no reason is known'}", one.removed_at)
        if one.status is MemberStatus.FAILED:
            told = "it has failed; nothing more happens by itself: a person retries it, undoes it or leaves it"
            command = f"matoolkit batch retry {batch.id} --member {shlex.quote(one.member_key)}"
            return Why(WhyKind.ENDED, told, one.failed_at, None, EndedBy.PERSON, "Operator", command)
        if batch.status not in UNFINISHED_BATCHES:
            return Why(WhyKind.ENDED, why.sentence, batch.completed_at)
        return why

    def _ready(self, key: WorkKey) -> list[Why]:
        """Say of work that nothing keeps which message has it sent; without one it is not explained (rule X5)."""
        undoes, number = key
        step = None if undoes else next((step for step in self._steps if step.id == number), None)
        if step is not None and (early := self._earlier_than(step)):
            return early
        names = [
            *(("phase-due", phase.id) for phase in self._scene.running_of(self._batch)),
            ("batch-wake", self._batch.id),
            ("member-added", self._member.id),
            ("member-removed", self._member.id),
            (str(Kind.ROLLBACK if undoes else Kind.STEP), number),
        ]
        fold = folded(self._member.member_key)
        is_told = self._scene.transit.has(*names) or self._scene.is_about_to_wake(self._batch, fold)
        if not is_told and self._waits_to_catch_up:
            return [self._catching_up()]
        return [on_its_way()] if is_told else []

    def _earlier_than(self, step: NextStep) -> list[Why]:
        """Say that an earlier phase has begun in which the member has no steps yet (rule O3)."""
        phases = {phase.id: phase for phase in self._scene.phases[self._batch.id]}
        earlier = unexpanded_before(phases.values(), phases[step.phase_execution_id]) if step.step_index == 0 else []
        if not earlier:
            return []
        there = members_in_phases(self._tx, earlier, [self._member.id])
        waits_for = [number for number in earlier if (number, self._member.id) not in there]
        told = "has begun, and its steps are yet to come"
        return [
            Why(WhyKind.EARLIER_PHASE, f"{phases[number].phase_name} {told}", phases[number].dispatched_at)
            for number in waits_for
            if self._scene.transit.has(("phase-due", number))
        ]

    def _idle(self) -> MemberWhys:
        if self._waits_to_catch_up:
            return self._answer([self._catching_up()])
        beginning = [phase for phase in self._scene.running_of(self._batch) if phase.expanded_at is None]
        if mine := [phase for phase in beginning if self._goes_through(phase)]:
            return self._answer(self._with_mine(mine[0]), mine[0])
        if pending := [phase for phase in self._scene.pending_of(self._batch) if self._goes_through(phase)]:
            return self._answer(self._with_mine(pending[0]), pending[0])
        if self._batch.status is not BatchStatus.ACTIVE:
            return self._answer(self._of_batches.of_batch(self._batch))
        done = Why(WhyKind.ENDED, "all is done for it; its batch ends with the others")
        return self._answer([done], is_open=False)

    def _with_mine(self, phase: PhaseRow) -> list[Why]:
        """Say what a phase waits for, and which gates will keep this member then, such as its own pause."""
        whys = self._of_batches.of_phase(phase)
        if not whys:
            return []
        begins_at = max(self._scene.at, phase.due_at or self._scene.at)
        shut = self._scene.gates.at(Door.START, replace(self._situation.work, phase=self._scene.doors[phase.id]))
        told = {why.gate_id for why in whys}
        stored = [why for why in shut if why.gate_id is not None and why.gate_id not in told]
        asked, joined_no = self._scene.doors[phase.id].sign_offs, self._situation.work.joined_no
        alone = will_wait(asked, joined_no) if asked is not None else None
        mine = [why for why in stored if why.until is None or why.until > begins_at]
        return [*whys, *([alone] if alone is not None else []), *mine]

    @property
    def _waits_to_catch_up(self) -> bool:
        return self._member.status is MemberStatus.ACTIVE and self._member.caught_up_at is None

    def _catching_up(self) -> Why:
        """Say what keeps a late joiner from its first steps (rule O10)."""
        if (hold := self._scene.gates.hold_of(self._batch.id)) is not None:
            return why_of(hold)
        if self._batch.status is not BatchStatus.ACTIVE:
            return Why(WhyKind.INIT, "the init of the batch is not done")
        told = "it joined late, and gets the steps of the phases that have begun"
        return Why(WhyKind.CATCHING_UP, told, self._member.added_at)

    def _goes_through(self, phase: PhaseRow) -> bool:
        first = first_phase(self._member.first_phase_version, self._member.first_phase_place)
        return first is None or not first.leaves_out(phase.runbook_version, self._place_of(phase))

    def _place_of(self, phase: PhaseRow) -> int:
        others = self._scene.phases[self._batch.id]
        return sum(one.runbook_version == phase.runbook_version and one.order < phase.order for one in others)

    def _phase_of(self, key: WorkKey) -> PhaseRow | None:
        undoes, number = key
        step = None if undoes else next((step for step in self._steps if step.id == number), None)
        return None if step is None else self._phase(step.phase_execution_id)

    def _phase_of_whys(self, whys: Iterable[Why]) -> PhaseRow | None:
        """Return the phase in which it waits: that of the work, or else of what comes next."""
        keys = [(why.undoes, why.work_id) for why in whys if why.work_id is not None]
        if keys:
            return self._phase_of(keys[0])
        phases = [self._phase(step.phase_execution_id) for step in self._steps]
        return min((phase for phase in phases if phase), key=lambda phase: phase.order, default=None)

    def _phase(self, number: int) -> PhaseRow | None:
        return next((phase for phase in self._scene.phases[self._batch.id] if phase.id == number), None)


def _by_member(found: Iterable[OpenT]) -> dict[int, list[OpenT]]:
    by_member: dict[int, list[OpenT]] = {}
    for one in found:
        if one.batch_member_id is not None:
            by_member.setdefault(one.batch_member_id, []).append(one)
    return by_member
