"""Everything that has not ended has something that will wake it; otherwise it is silently forgotten."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from matoolkit.domain.states import UNFINISHED_BATCHES
from matoolkit.simulate.database import MemoryDatabase
from matoolkit.simulate.doors import Doors, Waiting
from matoolkit.simulate.invariants import Violation

# Whether work waits at a gate that people shut, or will be woken because one was opened: at both doors.
_KEEPS = """
(SELECT COUNT(*) FROM gates g WHERE g.hold_key IS NULL AND (g.opened_at IS NULL OR g.swept_at IS NULL)
 AND (g.batch_id IS NULL OR g.batch_id = w.batch_id) AND (g.worker_id IS NULL OR g.worker_id = w.worker_id)
 AND (g.runbook_name IS NULL OR g.runbook_name = (SELECT runbook_name FROM batches WHERE id = w.batch_id))
 AND (g.member_key_fold IS NULL OR g.member_key_fold = {key}) AND (g.phase_execution_id IS NULL OR {phase}){reach})
"""
_SEND = " AND (g.reach = 'send' OR g.opened_at IS NOT NULL)"
_KEY = "(SELECT member_key_fold FROM batch_members WHERE id = w.batch_member_id)"
# A gate of a phase is about that phase and the later ones of its version.
_REACHED = """EXISTS (SELECT 1 FROM phase_executions of WHERE of.id = g.phase_execution_id AND of.batch_id = p.batch_id
 AND of.runbook_version = p.runbook_version
 AND (-of.offset_minutes, of.phase_index) <= (-p.offset_minutes, p.phase_index))"""
_AT_SEND = _KEEPS.format(key=_KEY, reach=_SEND, phase=_REACHED)
_AT_START = _KEEPS.format(key=_KEY, reach="", phase=_REACHED)
_STEPS = f"""
SELECT w.id, w.batch_member_id, w.batch_id, w.step_index, w.status, w.lost_at, w.retry_after, w.poll_due_at,
       w.epoch = m.epoch, m.status, b.status, b.is_held, p.status,
       p.runbook_version, -p.offset_minutes, p.phase_index, m.caught_up_at IS NOT NULL,
       {_AT_SEND}, {_AT_START}, p.id, r.rules, p.dispatched_at, p.woken_at, m.is_pilot, p.runbook_version,
       b.batch_start_time, r.publisher
FROM step_executions w JOIN batch_members m ON m.id = w.batch_member_id JOIN sim_batches b ON b.id = w.batch_id
JOIN phase_executions p ON p.id = w.phase_execution_id
LEFT JOIN sim_rules r ON r.version = p.runbook_version AND r.place = p.phase_index
WHERE w.status IN ('pending', 'dispatched', 'polling') OR w.lost_at IS NOT NULL
"""
_ROLLBACKS = f"""
SELECT w.id, w.batch_member_id, w.batch_id, w.step_index, w.status, w.lost_at, w.retry_after, w.poll_due_at,
       w.sequence_key, {_KEEPS.format(key=_KEY, reach=_SEND, phase="0")}
FROM rollback_executions w WHERE w.status IN ('pending', 'dispatched', 'polling') OR w.lost_at IS NOT NULL
ORDER BY w.id
"""
_INITS = f"""
SELECT w.id, NULL, w.batch_id, w.step_index, w.status, w.lost_at, w.retry_after, w.poll_due_at,
       {_KEEPS.format(key="''", reach="", phase="0")}
FROM init_executions w WHERE w.status IN ('pending', 'dispatched', 'polling') OR w.lost_at IS NOT NULL
"""
_WAITING_INITS = "SELECT id FROM sim_batches WHERE status = 'init_dispatched' AND NOT is_held"
_UNEXPANDED = "SELECT id, batch_id FROM phase_executions WHERE status = 'dispatched' AND expanded_at IS NULL"
_PHASES = "SELECT id, batch_id FROM phase_executions WHERE status = 'dispatched'"
_OPEN = ("pending", "dispatched", "polling")


@dataclass(frozen=True, slots=True)
class _Execution:
    """Work that has not ended, or whose job is out."""

    kind: str
    id: int
    member: int | None
    batch: int
    index: int
    status: str
    lost_at: str | None
    retry_after: str | None
    poll_due_at: str | None
    rest: tuple[Any, ...]

    @property
    def is_startable(self) -> bool:
        return self.status == "pending" and self.retry_after is None

    @property
    def is_open(self) -> bool:
        return self.status in _OPEN

    def __str__(self) -> str:
        return f"{self.kind} {self.id} of member {self.member} in batch {self.batch} ({self.status}, {self.rest})"


def _executions(database: MemoryDatabase, kind: str, query: str) -> list[_Execution]:
    return [
        _Execution(kind, row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8:])
        for row in database.look(query)
    ]


def nothing_forgotten(database: MemoryDatabase, message_ids: Sequence[str], doors: Doors) -> None:
    """Demand that everything that has not ended will be woken, by a message, by a time or by a person."""
    steps = _executions(database, "step", _STEPS)
    rollbacks = _executions(database, "rollback", _ROLLBACKS)
    inits = _executions(database, "init", _INITS)
    _times_are_set([*steps, *rollbacks, *inits])
    queued = _Queued(database, message_ids)
    _steps_belong(steps, queued)
    _members_go_on(steps, rollbacks, queued, doors)
    _inits_go_on(database, inits, rollbacks, queued, doors)
    for phase, _ in database.look(_UNEXPANDED):
        if phase not in queued.phases:
            raise Violation(f"phase {phase} is dispatched, but no message says so")


class _Queued:
    """What the messages on their way are about."""

    def __init__(self, database: MemoryDatabase, message_ids: Sequence[str]) -> None:
        self.phases = _numbers(message_ids, "phase-due-")
        self.added = _numbers(message_ids, "member-added-")
        self.removed = _numbers(message_ids, "member-removed-")
        self.inits = _numbers(message_ids, "batch-init-")
        self.retried = _numbers(message_ids, "retry-check-rollback-")
        self.woken = _numbers(message_ids, "batch-wake-")
        self.batches = {batch for phase, batch in database.look(_PHASES) if phase in self.phases} | self.woken


def _numbers(message_ids: Iterable[str], prefix: str) -> set[int]:
    return {int(name[len(prefix) :].split("-")[0]) for name in message_ids if name.startswith(prefix)}


def _times_are_set(executions: Iterable[_Execution]) -> None:
    for work in executions:
        if work.status == "dispatched" and work.lost_at is None:
            raise Violation(f"a job that would never count as lost: {work}")
        if work.status == "polling" and work.poll_due_at is None:
            raise Violation(f"nothing will poll again: {work}")


def _steps_belong(steps: Iterable[_Execution], queued: _Queued) -> None:
    """Demand that open steps are those of active members in phases and batches that go on."""
    for step in steps:
        is_current, member, batch, _, phase = step.rest[:5]
        if not step.is_open:
            continue
        if batch not in UNFINISHED_BATCHES:
            raise Violation(f"open in a batch that is {batch}: {step}")
        if phase != "dispatched":
            raise Violation(f"open in a phase that is {phase}: {step}")
        if member == "failed" or (member == "removed" and step.member not in queued.removed):
            raise Violation(f"open, though its member is {member} and no message will say so: {step}")
        if member == "active" and not is_current and step.rest[8]:
            raise Violation(f"open, though its member has started all over: {step}")


def _members_go_on(steps: Sequence[_Execution], rollbacks: Sequence[_Execution], queued: _Queued, doors: Doors) -> None:
    for member in {work.member for work in (*steps, *rollbacks) if work.member is not None}:
        mine = [step for step in steps if step.member == member]
        undoing = [rollback for rollback in rollbacks if rollback.member == member]
        if any(work.lost_at is not None for work in (*mine, *undoing)):
            continue
        if undoing and all(rollback.is_startable for rollback in undoing):
            _sequence_goes_on(undoing, queued)
        if undoing:
            continue
        todo = [step for step in mine if step.rest[0]]
        if not todo:
            continue
        if not all(step.is_startable for step in todo):
            # A member finishes a poll or retry before anything else begins.
            continue
        first = min(todo, key=lambda step: (step.rest[5:8], step.index))
        if member not in queued.added and first.batch not in queued.batches and not _waits(first, doors, queued):
            raise Violation(f"silently forgotten: {first} could start, and nothing will start it")


def _waits(first: _Execution, doors: Doors, queued: _Queued) -> bool:
    """Tell whether the next step of a member waits for a person, for time, or for others."""
    _, status, batch, is_held = first.rest[:4]
    # A sweep looks for members that have not caught up, and the end of a hold wakes them.
    is_caught_up = first.rest[8]
    if status != "active" or not is_caught_up or (first.index == 0 and (batch != "active" or is_held)):
        return True
    at_send, at_start, *phase = first.rest[9:]
    kept = at_start if first.index == 0 else at_send
    if kept or first.member is None:
        return bool(kept)
    return doors.will_let_in(Waiting(first.member, first.batch, first.index, *phase), queued.added | queued.removed)


def _sequence_goes_on(undoing: Sequence[_Execution], queued: _Queued) -> None:
    first: dict[object, int] = {}
    for rollback in undoing:
        first.setdefault(rollback.rest[0], rollback.id)
    nearest = min(undoing, key=lambda rollback: (first[rollback.rest[0]], rollback.index))
    is_woken = nearest.member in queued.removed | queued.added or nearest.id in queued.retried
    is_woken = is_woken or nearest.batch in queued.woken or nearest.rest[1]
    if not is_woken:
        raise Violation(f"silently forgotten: {nearest} could start, and nothing will start it")


def _inits_go_on(
    database: MemoryDatabase,
    inits: Sequence[_Execution],
    rollbacks: Sequence[_Execution],
    queued: _Queued,
    doors: Doors,
) -> None:
    for (batch,) in database.look(_WAITING_INITS):
        if batch in queued.inits | queued.woken:
            continue
        told = queued.added | queued.removed
        undoing = [work for work in rollbacks if work.batch == batch and work.member is None]
        mine = [init for init in inits if init.batch == batch]
        waits = any(work.lost_at is not None or (work.is_open and not work.is_startable) for work in (*mine, *undoing))
        waits = waits or any(work.rest[-1] for work in (*mine, *undoing)) or doors.init_waits(batch, told)
        if not waits:
            raise Violation(f"silently forgotten: the init of batch {batch}; open are {[*map(str, [*mine, *undoing])]}")
