"""What batches, their inits and their phases wait for (rules X1 and X2)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from matoolkit.admin.scene import Scene
from matoolkit.announcing.signoffs import sign_offs_of_init
from matoolkit.announcing.situations import open_work, undoing_of_init
from matoolkit.announcing.versions import runbook_in, stored_runbook
from matoolkit.domain.doors import Door, Work
from matoolkit.domain.explaining import Ready, WorkKey, WorkTold, ahead_of, tell, what_keeps, without_repeats
from matoolkit.domain.gates import why_of
from matoolkit.domain.progress import Wait, next_of_init
from matoolkit.domain.states import ENDED_BATCHES, BatchStatus, PhaseStatus, StepStatus
from matoolkit.domain.why import EndedBy, Why, WhyKind
from matoolkit.ids import Kind
from matoolkit.store import Transaction
from matoolkit.store.batches import BatchRow
from matoolkit.store.executions import ExecutionRow, InitRow, RollbackRow, rollbacks_by_id
from matoolkit.store.inits import inits_of_batches
from matoolkit.store.narrow_executions import (
    InitState,
    RollbackState,
    init_states_of_batches,
    unfinished_rollbacks_of_inits,
)
from matoolkit.store.phases import PhaseRow
from matoolkit.words import counted

_UNDONE_FIRST = "its init has failed, and what that did is undone before the batch fails or begins its init anew"
_ON_ITS_WAY = "its turn has come: the message that says so is on its way"


def on_its_way(since: datetime | None = None, told: str = _ON_ITS_WAY) -> Why:
    """Say that nothing keeps it any more but a message that is yet to be handled."""
    return Why(WhyKind.OUTBOX, told, since)


def told_of(row: ExecutionRow, *, what: str | None = None) -> WorkTold:
    """Return of work what people are told."""
    return WorkTold(
        what or row.step_name,
        row.worker_id,
        row.status,
        row.attempt,
        row.dispatched_at,
        row.lost_at,
        row.poll_count,
        row.poll_started_at,
        row.poll_timeout_sec,
        row.error_message or row.error_type,
    )


class BatchWhys:
    """Says for what batches of a scene wait as a whole, and each of their phases."""

    def __init__(self, tx: Transaction, scene: Scene) -> None:
        self._tx, self._scene = tx, scene
        ids = [batch.id for batch in scene.batches.values() if batch.status not in ENDED_BATCHES]
        self._inits: dict[int, list[InitState]] = {}
        for state in init_states_of_batches(tx, ids):
            self._inits.setdefault(state.batch_id, []).append(state)
        self._undoing: dict[int, list[RollbackState]] = {}
        undoing = unfinished_rollbacks_of_inits(tx, scene.batches)
        for rollback in undoing:
            self._undoing.setdefault(rollback.batch_id, []).append(rollback)
        rows = {row.id: row for row in inits_of_batches(tx, self._inits)}
        self._rows: Mapping[int, InitRow] = rows
        self._rollbacks: Mapping[int, RollbackRow] = {
            row.id: row for row in rollbacks_by_id(tx, [one.id for one in undoing])
        }

    def of_batch(self, batch: BatchRow) -> list[Why]:
        """Say what a batch waits for as a whole; one whose phases wait for their times waits for nothing else."""
        if batch.status in ENDED_BATCHES:
            ended = Why(WhyKind.ENDED, f"the batch is {batch.status}", batch.completed_at)
            return [*self._undoing_of(batch), ended]
        shut = self.with_approval(batch, self._scene.gates.at(Door.START, Work(batch.runbook_name, batch.id)))
        if batch.status is BatchStatus.ACTIVE:
            return [*shut, *self._undoing_of(batch)]
        if batch.status is BatchStatus.INIT_DISPATCHED:
            return without_repeats([*shut, *self._init_of(batch)])
        return shut or [_to_begin(batch), *self._first_init_of(batch)]

    def _first_init_of(self, batch: BatchRow) -> list[Why]:
        """Say what keeps a person from beginning the init of a manual batch."""
        version = self._scene.version_of(batch)
        runbook = runbook_in(version)
        if not batch.is_manual or not runbook.init:
            return []
        init = sign_offs_of_init(self._tx, batch, version.version, runbook, self._scene.at)
        return self._scene.gates.at(Door.START, Work(batch.runbook_name, batch.id, is_init=True, init=init))

    def of_phase(self, phase: PhaseRow, open_members: int | None = None) -> list[Why]:
        """Say what a phase waits for; `open_members` is how many are in it, if it is under way."""
        batch = self._scene.batches[phase.batch_id]
        if phase.status is PhaseStatus.DISPATCHED:
            return self._running(phase, open_members)
        if phase.status is not PhaseStatus.PENDING or batch.status in ENDED_BATCHES:
            return [Why(WhyKind.ENDED, f"the phase is {phase.status}", phase.completed_at)]
        if batch.is_manual:
            return self._manual(batch, phase)
        whys = [] if batch.status is BatchStatus.ACTIVE else [Why(WhyKind.INIT, "the init of the batch is not done")]
        if phase.due_at is not None and phase.due_at > self._scene.at:
            ahead = ahead_of(self._scene.doors[phase.id], phase.due_at, self._at_start(phase))
            return self.with_approval(batch, [*whys, *ahead])
        if whys:
            return self.with_approval(batch, [*whys, *self._at_start(phase)])
        kept = self._scene.kept.get(phase.id)
        return self.with_approval(batch, self._with_own_gates(phase, kept)) if kept else [self._tick(batch, phase)]

    def _with_own_gates(self, phase: PhaseRow, kept: Sequence[Why]) -> list[Why]:
        """Say of a phase that waits for an earlier one which gates are shut for it besides."""
        told = {why.gate_id for why in kept}
        own = [gate for gate in self._scene.gates.in_force if gate.phase_execution_id == phase.id]
        return [*kept, *(why_of(gate) for gate in own if gate.id not in told)]

    def _at_start(self, phase: PhaseRow) -> list[Why]:
        batch, gates = self._scene.batches[phase.batch_id], self._scene.gates
        return gates.at(Door.START, Work(batch.runbook_name, batch.id, phase=self._scene.doors[phase.id]))

    def _running(self, phase: PhaseRow, open_members: int | None) -> list[Why]:
        if phase.expanded_at is None:
            told = "it has begun, and its members get their steps"
            is_told = self._scene.transit.has(("phase-due", phase.id))
            return [on_its_way(phase.dispatched_at, told)] if is_told else []
        if open_members:
            told = f"{counted(open_members, 'member')} {'is' if open_members == 1 else 'are'} in it"
            return [Why(WhyKind.MEMBERS, told, phase.dispatched_at)]
        return [on_its_way(None, "no step of it is open any more; that it has ended is noted next")]

    def _manual(self, batch: BatchRow, phase: PhaseRow) -> list[Why]:
        running = self._scene.running_of(batch)
        before = [*running, *(one for one in self._scene.pending_of(batch) if one.order < phase.order)]
        if before:
            return [Why(WhyKind.EARLIER_PHASE, f"{before[0].phase_name} comes first")]
        if batch.status is BatchStatus.INIT_DISPATCHED:
            return [Why(WhyKind.INIT, "the init of the batch is not done"), *self._at_start(phase)]
        return [_to_advance(batch, phase.phase_name), *self._at_start(phase)]

    def _tick(self, batch: BatchRow, phase: PhaseRow) -> Why:
        tick = self._scene.tick_of(batch)
        last = f"; the last one began at {tick.started_at:%H:%M} UTC" if tick is not None else ""
        return Why(WhyKind.TICK, f"{phase.phase_name} is due, and begins with the next tick{last}", phase.due_at)

    def with_approval(self, batch: BatchRow, whys: Sequence[Why]) -> list[Why]:
        """Say of a hold that was approved that it waits for a tick, which carries out what was approved."""
        hold = self._scene.gates.hold_of(batch.id)
        if batch.approved_hold_at is None or hold is None:
            return list(whys)
        return [self._approved(batch, why) if why.gate_id == hold.id else why for why in whys]

    def _approved(self, batch: BatchRow, why: Why) -> Why:
        told = f"{batch.approved_hold_by} approved what the batch was held for, and the next tick carries it out"
        version = self._scene.version_of(batch)
        if self._scene.is_automated(batch) and version.is_active:
            return Why(WhyKind.TICK, told, batch.approved_hold_at, gate_id=why.gate_id)
        command = f"matoolkit automation enable {batch.runbook_name}"
        off = f"{told}; but automation of {batch.runbook_name} is off"
        if not version.is_active:
            command, off = f"matoolkit runbook list {batch.runbook_name}", f"{told}; but it follows no active version"
        since, kind = batch.approved_hold_at, WhyKind.AUTOMATION_OFF
        return Why(kind, off, since, None, EndedBy.PERSON, "Admin", command, why.gate_id)

    def _init_of(self, batch: BatchRow) -> list[Why]:
        """Say what an init waits for, asked of what decides it (rule O1)."""
        inits = self._inits.get(batch.id, [])
        told = {(False, state.id): self._init_told(state.id) for state in inits}
        out = [open_work(state) for state in inits if state.is_in_flight]
        if out or self._undoing.get(batch.id):
            waiting = next_of_init(out)
            whys = [tell(why, told) for why in waiting.whys] if out and isinstance(waiting, Wait) else []
            undoing = self._undoing_of(batch)
            # Only beside what it waits for: by itself it would explain an undoing that nobody goes on with (rule X5).
            behind = [Why(WhyKind.COMPENSATION, _UNDONE_FIRST)] if undoing else []
            return [*whys, *undoing, *behind]
        latest = max((state.runbook_version for state in inits), default=0)
        current = [state for state in inits if state.runbook_version == latest]
        if not current or any(state.init_count < batch.init_count for state in current):
            return self._sent(batch, "the init was asked for: the message that says so is on its way")
        opened = [state for state in current if state.status is not StepStatus.SUCCEEDED]
        return self._next_of_init(batch, opened, told)

    def _next_of_init(
        self, batch: BatchRow, opened: Sequence[InitState], told: Mapping[WorkKey, WorkTold]
    ) -> list[Why]:
        decided = next_of_init([open_work(state) for state in opened])
        if isinstance(decided, Wait):
            behind = [
                shut
                for why in decided.whys
                if why.work_id is not None and why.kind in (WhyKind.POLL, WhyKind.RETRY)
                for shut in self._at_send(batch, told[False, why.work_id], is_first=False)
            ]
            return without_repeats([*behind, *(tell(why, told) for why in decided.whys)])
        is_first = min(state.step_index for state in opened) == 0
        return self._at_send(batch, told[False, decided.id], is_first=is_first) or self._sent(batch)

    def _init_told(self, number: int) -> WorkTold:
        row = self._rows[number]
        return told_of(row, what=f"init step {row.step_name}")

    def _at_send(self, batch: BatchRow, work: WorkTold, *, is_first: bool) -> list[Why]:
        wanting = Work(batch.runbook_name, batch.id, work.worker_id, is_init=True)
        if not is_first:
            return self._scene.gates.at(Door.SEND, wanting)
        version = max(state.runbook_version for state in self._inits[batch.id])
        runbook = stored_runbook(self._tx, batch.runbook_name, version)
        init = sign_offs_of_init(self._tx, batch, version, runbook, self._scene.at)
        return self._scene.gates.at(Door.START, replace(wanting, init=init))

    def _undoing_of(self, batch: BatchRow) -> list[Why]:
        """Say what the undoing of an init waits for."""
        rollbacks = self._undoing.get(batch.id)
        if not rollbacks:
            return []
        told: dict[WorkKey, WorkTold] = {}
        for one in rollbacks:
            row = self._rollbacks[one.id]
            told[True, one.id] = told_of(row, what=f"{row.sequence_name}/{row.step_name}, which undoes the init,")
        found = what_keeps(undoing_of_init(batch, self._scene.gates, rollbacks), told)
        if isinstance(found, Ready):
            names = [(str(Kind.ROLLBACK), found.key[1])]
            return self._sent(batch, _ON_ITS_WAY, *names)
        return list(found) if isinstance(found, list) else []

    def _sent(self, batch: BatchRow, told: str = _ON_ITS_WAY, *names: tuple[str, int]) -> list[Why]:
        is_told = self._scene.transit.has(("batch-init", batch.id), ("batch-wake", batch.id), *names)
        return [on_its_way(told=told)] if is_told or self._scene.is_about_to_wake(batch) else []


def _to_begin(batch: BatchRow) -> Why:
    if batch.is_manual:
        return _to_advance(batch, "what comes first")
    return Why(WhyKind.TICK, "it has not begun; the next tick of the scheduler looks at it", batch.detected_at)


def _to_advance(batch: BatchRow, what: str) -> Why:
    told = f"{what} begins when a person advances the batch"
    command = f"matoolkit batch advance {batch.id}"
    return Why(WhyKind.ADVANCE, told, None, None, EndedBy.PERSON, "Admin", command)
