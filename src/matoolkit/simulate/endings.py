"""What must hold at the end, when nothing is left to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from matoolkit.domain.states import NOTHING_TO_UNDO
from matoolkit.simulate.invariants import Violation

if TYPE_CHECKING:
    from matoolkit.simulate.world import World

_NOTHING_TO_UNDO = ", ".join(f"'{reason}'" for reason in sorted(NOTHING_TO_UNDO))


def everything_ended(world: World) -> None:
    """Demand an end for everything and everybody."""
    look = world.plant.state.look
    if open_steps := look(
        "SELECT id, status FROM step_executions WHERE status IN ('pending', 'dispatched', 'polling')"
    ):
        raise Violation(f"steps are open at the end: {open_steps}")
    _members_went_through(world)
    _failed_were_undone(world)
    _leavers_were_seen_off(world)
    _undone_came_to_rest(world)
    _everybody_has_a_place(world)


def _members_went_through(world: World) -> None:
    """Demand that members that are active at the end succeeded in all steps of phases that were not superseded."""
    unfinished = world.plant.state.look(
        "SELECT m.member_key, s.id, s.step_name, s.status FROM batch_members m JOIN batches b ON b.id = m.batch_id "
        "JOIN step_executions s ON s.batch_member_id = m.id AND s.epoch = m.epoch "
        "JOIN phase_executions p ON p.id = s.phase_execution_id WHERE m.status = 'active' "
        "AND b.status IN ('completed', 'failed') AND p.status <> 'superseded' AND s.status <> 'succeeded'"
    )
    if unfinished:
        raise Violation(f"active at the end, but not through: {unfinished}")
    left_out = world.plant.state.look(
        "SELECT m.member_key, p.id, p.phase_name FROM batch_members m JOIN batches b ON b.id = m.batch_id "
        "JOIN phase_executions p ON p.batch_id = b.id JOIN runbooks r ON r.id = b.runbook_id "
        "WHERE m.status = 'active' AND b.status IN ('completed', 'failed') AND p.runbook_version = r.version "
        "AND p.status IN ('completed', 'failed') AND p.dispatch_count > 0 "
        "AND NOT EXISTS (SELECT 1 FROM step_executions s WHERE s.phase_execution_id = p.id "
        "AND s.batch_member_id = m.id AND s.epoch = m.epoch) "
        # A retried member begins with the first phase that it had not completed (rule O14).
        "AND NOT (m.first_phase_version IS p.runbook_version AND m.first_phase_place > (SELECT COUNT(*) "
        "FROM phase_executions o WHERE o.batch_id = p.batch_id AND o.runbook_version = p.runbook_version "
        "AND (-o.offset_minutes, o.phase_index) < (-p.offset_minutes, p.phase_index)))"
    )
    if left_out:
        raise Violation(f"a phase went past members: {left_out}")


def _failed_were_undone(world: World) -> None:
    """Demand that steps that failed a member and have a rollback were followed by it, once."""
    failed = world.plant.state.look(
        "SELECT s.id, s.attempt, s.on_failure, COUNT(r.id), COUNT(DISTINCT r.sequence_key) FROM step_executions s "
        "JOIN batch_members m ON m.id = s.batch_member_id AND m.epoch = s.epoch AND m.status = 'failed' "
        "LEFT JOIN rollback_executions r ON r.step_execution_id = s.id AND r.sequence_key = "
        "'step-' || s.id || '-' || s.attempt WHERE s.status IN ('failed', 'poll_timeout') "
        "AND s.on_failure IS NOT NULL GROUP BY s.id"
    )
    for number, attempt, name, steps, _ in failed:
        if steps == 0:
            raise Violation(f"step {number} failed at attempt {attempt}, and {name} never ran")


def _leavers_were_seen_off(world: World) -> None:
    """Demand that removal steps ran for members that left, unless a person cancelled the batch."""
    look = world.plant.state.look
    cancelled = {int(batch) for (batch,) in look("SELECT subject_id FROM audit_log WHERE action = 'batch.cancel'")}
    steps = {
        runbook: len(orjson.loads(content).get("on_member_removed", ()))
        for runbook, content in look("SELECT id, yaml_content FROM runbooks")
    }
    left = look(
        "SELECT m.id, m.epoch, m.member_key, b.id, b.runbook_id, (SELECT COUNT(*) FROM rollback_executions r "
        "WHERE r.sequence_key = 'removed-' || m.id || '-' || m.epoch AND r.status <> 'cancelled') "
        "FROM batch_members m JOIN batches b ON b.id = m.batch_id "
        f"WHERE m.status = 'removed' AND m.undone_at IS NULL AND m.remove_reason NOT IN ({_NOTHING_TO_UNDO})"
    )
    for member, epoch, key, batch, runbook, count in left:
        is_same_version = world.watch.removals[member, epoch] == runbook
        if is_same_version and batch not in cancelled and count != steps[runbook]:
            raise Violation(f"{key} left batch {batch}, and {count} of {steps[runbook]} removal steps ran")


def _undone_came_to_rest(world: World) -> None:
    """Demand that all steps of the version that a person chose ran for members that were undone, whatever the batch."""
    look = world.plant.state.look
    steps = {
        version: len(orjson.loads(content).get("on_member_removed", ()))
        for version, content in look("SELECT version, yaml_content FROM runbooks")
    }
    undone = look(
        "SELECT m.id, m.member_key, m.undo_version, m.seen_off_at, (SELECT COUNT(*) FROM rollback_executions r "
        "WHERE r.sequence_key = 'removed-' || m.id || '-' || m.epoch AND r.status <> 'cancelled') "
        "FROM batch_members m WHERE m.undone_at IS NOT NULL"
    )
    for member, key, version, seen_off_at, count in undone:
        if seen_off_at is None or count != (steps[version] if version else 0):
            raise Violation(f"member {member} ({key}) was undone by version {version}, and {count} steps ran")


def _everybody_has_a_place(world: World) -> None:
    """Demand that everybody in the source is or was a member, or is shown with the reason why not."""
    known = {key for (key,) in world.plant.state.look("SELECT member_key FROM batch_members")}
    remarks = [
        remark
        for (found,) in world.plant.state.look("SELECT remarks_json FROM runbook_ticks")
        for remark in orjson.loads(found)
    ]
    if any(remark["count"] > len(remark["samples"]) for remark in remarks):
        return
    shown = {key for remark in remarks for key in remark["samples"]}
    for key in world.crowd.rows:
        if key not in known | shown | world.crowd.hidden:
            raise Violation(f"{key} is in the source, and the system does not know it")
