"""What the database itself writes down while the simulation runs: every move of every row, as it was committed.

Triggers see what no look from outside can: how the member, the batch and the hold stood at the very moment at which a
job was dispatched. What a crash rolls back is rolled back here too.
"""

from matoolkit.simulate.doortriggers import DOOR_TRIGGERS

_WORK = """
    'job', NEW.job_id, 'attempt', NEW.attempt, 'index', NEW.step_index, 'name', NEW.step_name, 'batch', NEW.batch_id,
    'polls', NEW.is_poll_step, 'error', NEW.error_type, 'message', NEW.error_message, 'params', NEW.params_json,
    'lost_at', NEW.lost_at, 'old_lost_at', OLD.lost_at, 'old_params', OLD.params_json,
    'answered', NEW.answered_at IS NOT NULL, 'tries', NEW.retry_count - OLD.retry_count, 'worker', NEW.worker_id,
    'ended', NEW.completed_at, 'poll_started', NEW.poll_started_at, 'poll_timeout', NEW.poll_timeout_sec
"""
# Gates that keep work at the moment of its dispatch, recomputed from their rows (rules G1 to G3).
_NOW_SHUT = "g.opened_at IS NULL AND g.shut_from <= {at} AND (g.shut_until IS NULL OR g.shut_until > {at})"
_SCOPE = """(g.batch_id IS NULL OR g.batch_id = NEW.batch_id) AND (g.worker_id IS NULL OR g.worker_id = {worker})
    AND (g.runbook_name IS NULL OR g.runbook_name = (SELECT runbook_name FROM batches WHERE id = NEW.batch_id))
    AND (g.member_key_fold IS NULL OR g.member_key_fold = {key})
    AND (g.phase_execution_id IS NULL OR EXISTS (SELECT 1 FROM phase_executions of, phase_executions mine
         WHERE of.id = g.phase_execution_id AND mine.id = {phase} AND of.batch_id = mine.batch_id
         AND of.runbook_version = mine.runbook_version
         AND (-of.offset_minutes, of.phase_index) <= (-mine.offset_minutes, mine.phase_index)))"""
_KEY = "(SELECT member_key_fold FROM batch_members WHERE id = NEW.batch_member_id)"


def _gates(worker: str, key: str, at: str, phase: str = "NULL") -> str:
    """Count the gates at both doors; holds are looked at on their own. Those of a phase keep later phases too."""
    shut = f"FROM gates g WHERE g.hold_key IS NULL AND {_NOW_SHUT.format(at=at)} AND "
    shut += _SCOPE.format(worker=worker, key=key, phase=phase)
    return f"'start_gates', (SELECT COUNT(*) {shut}), 'send_gates', (SELECT COUNT(*) {shut} AND g.reach = 'send')"


_BATCH = """
    'batch_status', (SELECT status FROM batches WHERE id = NEW.batch_id),
    'held', (SELECT is_held FROM sim_batches WHERE id = NEW.batch_id),
    'manual', (SELECT is_manual FROM batches WHERE id = NEW.batch_id)
"""
_MEMBER = """
    'member', NEW.batch_member_id, 'epoch', NEW.epoch,
    'key', (SELECT member_key_fold FROM batch_members WHERE id = NEW.batch_member_id),
    'member_status', (SELECT status FROM batch_members WHERE id = NEW.batch_member_id),
    'member_epoch', (SELECT epoch FROM batch_members WHERE id = NEW.batch_member_id),
    'excluded', (SELECT COUNT(*) FROM member_exclusions e JOIN batch_members m ON m.member_key_fold = e.member_key_fold
                 WHERE m.id = NEW.batch_member_id AND e.included_at IS NULL)
"""
_STEP = """
    'phase', NEW.phase_execution_id,
    'version', (SELECT runbook_version FROM phase_executions WHERE id = NEW.phase_execution_id),
    'follows', (SELECT r.version FROM batches b JOIN runbooks r ON r.id = b.runbook_id WHERE b.id = NEW.batch_id),
    'phase_status', (SELECT status FROM phase_executions WHERE id = NEW.phase_execution_id),
    'undoing', (SELECT COUNT(*) FROM rollback_executions WHERE batch_member_id = NEW.batch_member_id
                AND status IN ('pending', 'dispatched', 'polling')),
    'before', (SELECT COUNT(*) FROM step_executions WHERE batch_member_id = NEW.batch_member_id AND epoch = NEW.epoch
               AND phase_execution_id = NEW.phase_execution_id AND step_index < NEW.step_index
               AND status <> 'succeeded'),
    'earlier', (SELECT COUNT(*) FROM step_executions s JOIN phase_executions p ON p.id = s.phase_execution_id
                JOIN phase_executions mine ON mine.id = NEW.phase_execution_id
                WHERE s.batch_member_id = NEW.batch_member_id AND s.epoch = NEW.epoch
                AND s.status IN ('pending', 'dispatched', 'polling') AND (p.runbook_version, -p.offset_minutes,
                p.phase_index) < (mine.runbook_version, -mine.offset_minutes, mine.phase_index)),
    'unexpanded', (SELECT COUNT(*) FROM phase_executions p JOIN phase_executions mine
                   ON mine.id = NEW.phase_execution_id AND p.batch_id = mine.batch_id
                   WHERE p.status = 'dispatched' AND p.expanded_at IS NULL AND (p.runbook_version, -p.offset_minutes,
                   p.phase_index) < (mine.runbook_version, -mine.offset_minutes, mine.phase_index)
                   AND NOT EXISTS (SELECT 1 FROM step_executions s WHERE s.phase_execution_id = p.id
                   AND s.batch_member_id = NEW.batch_member_id AND s.epoch = NEW.epoch)),
    'outputs', (SELECT worker_data_json FROM batch_members WHERE id = NEW.batch_member_id)
"""
_INIT = """
    'version', NEW.runbook_version,
    'before', (SELECT COUNT(*) FROM init_executions WHERE batch_id = NEW.batch_id
               AND runbook_version = NEW.runbook_version AND step_index < NEW.step_index AND status <> 'succeeded'),
    'undone', (SELECT COUNT(*) FROM rollback_executions r JOIN init_executions i ON i.id = r.init_execution_id
               WHERE i.batch_id = NEW.batch_id AND i.runbook_version = NEW.runbook_version AND r.attempt > 0)
"""
# A retried step blocks later steps, but not a later step that already waits for its own retry.
_ROLLBACK = """
    'sequence', NEW.sequence_key, 'cause', NEW.cause,
    'before', (SELECT COUNT(*) FROM rollback_executions WHERE sequence_key = NEW.sequence_key
               AND step_index < NEW.step_index AND status IN ('pending', 'dispatched', 'polling')
               AND NOT (status = 'pending' AND attempt > 0 AND job_id IS NULL AND NEW.job_id NOT LIKE '%-attempt-%')),
    'begun', (SELECT COUNT(*) FROM rollback_executions WHERE sequence_key = NEW.sequence_key AND attempt > 0),
    'others', (SELECT COUNT(*) FROM rollback_executions r WHERE r.batch_member_id = NEW.batch_member_id
               AND r.sequence_key <> NEW.sequence_key AND r.status IN ('pending', 'dispatched', 'polling')
               AND EXISTS (SELECT 1 FROM rollback_executions begun WHERE begun.sequence_key = r.sequence_key
               AND begun.attempt > 0))
"""
_MOVED = "OLD.status IS NOT NEW.status"
# A batch may be asked for its init again, or get another time, without changing its status.
_BATCH_MOVED = f"{_MOVED} OR OLD.init_count IS NOT NEW.init_count"
_BATCH_MOVED += " OR OLD.batch_start_time IS NOT NEW.batch_start_time"
# A batch that has not begun is held, but its members still come and go.
_IS_SHUT = "is_held AND kind NOT IN ('late', 'repeat')"
_IS_EXCLUDED = """(SELECT COUNT(*) FROM member_exclusions e WHERE e.member_key_fold = NEW.member_key_fold
                  AND e.included_at IS NULL)"""
_MEMBERS = f"""
    'batch', NEW.batch_id, 'epoch', NEW.epoch, 'old_epoch', OLD.epoch, 'reason', NEW.remove_reason,
    'outputs', NEW.worker_data_json, 'old_outputs', OLD.worker_data_json,
    'version', (SELECT runbook_id FROM batches WHERE id = NEW.batch_id), 'by', NEW.removed_by,
    'follows', (SELECT r.version FROM batches b JOIN runbooks r ON r.id = b.runbook_id WHERE b.id = NEW.batch_id),
    'failed_under', (SELECT MAX(p.runbook_version) FROM step_executions s JOIN phase_executions p
                     ON p.id = s.phase_execution_id WHERE s.batch_member_id = NEW.id AND s.epoch = OLD.epoch),
    'held', (SELECT {_IS_SHUT} AND NOT is_approved FROM sim_batches WHERE id = NEW.batch_id),
    'mark', NEW.undone_at IS NOT NULL, 'old_mark', OLD.undone_at IS NOT NULL, 'excluded', {_IS_EXCLUDED}
"""
_BATCHES = """
    'init_count', NEW.init_count, 'old_init_count', OLD.init_count, 'start', NEW.batch_start_time,
    'old_start', OLD.batch_start_time,
    'phases', (SELECT COUNT(*) FROM phase_executions WHERE batch_id = NEW.id AND status IN ('pending', 'dispatched')),
    'waiting', (SELECT COUNT(*) FROM batch_members WHERE batch_id = NEW.id AND status = 'active'
                AND caught_up_at IS NULL),
    'active', (SELECT COUNT(*) FROM batch_members WHERE batch_id = NEW.id AND status = 'active'),
    'undoing', (SELECT COUNT(*) FROM rollback_executions WHERE batch_id = NEW.id
                AND status IN ('pending', 'dispatched', 'polling'))
"""
_PHASES = """
    'batch', NEW.batch_id, 'version', NEW.runbook_version, 'name', NEW.phase_name,
    'expanded', NEW.expanded_at IS NOT NULL,
    'batch_status', (SELECT status FROM batches WHERE id = NEW.batch_id),
    'held', (SELECT is_held FROM sim_batches WHERE id = NEW.batch_id),
    'open', (SELECT COUNT(*) FROM step_executions WHERE phase_execution_id = NEW.id
             AND status IN ('pending', 'dispatched', 'polling')),
    'through', (SELECT COUNT(*) FROM batch_members m WHERE m.batch_id = NEW.batch_id AND EXISTS
                (SELECT 1 FROM step_executions s WHERE s.phase_execution_id = NEW.id AND s.batch_member_id = m.id
                 AND s.epoch = m.epoch) AND NOT EXISTS
                (SELECT 1 FROM step_executions s WHERE s.phase_execution_id = NEW.id AND s.batch_member_id = m.id
                 AND s.epoch = m.epoch AND s.status <> 'succeeded'))
"""

_JOB_GATES = _gates("NEW.worker_id", _KEY, "NEW.dispatched_at")
_INIT_GATES = _gates("NEW.worker_id", "''", "NEW.dispatched_at")
_STEP_GATES = _gates("NEW.worker_id", _KEY, "NEW.dispatched_at", "NEW.phase_execution_id")
_PHASE_GATES = _gates("''", "''", "NEW.dispatched_at", "NEW.id")

_TABLE = """
CREATE TABLE sim_log (seq INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT, id INTEGER, old TEXT, new TEXT, about TEXT)
"""


def _on_update(table: str, what: str, facts: str, when: str = _MOVED) -> str:
    return (
        f"CREATE TRIGGER sim_{table} AFTER UPDATE ON {table} WHEN {when} BEGIN INSERT INTO sim_log "
        f"(what, id, old, new, about) VALUES ('{what}', NEW.id, OLD.status, NEW.status, json_object({facts})); END"
    )


def _on_message(table: str) -> str:
    return (
        f"CREATE TRIGGER sim_{table} AFTER INSERT ON {table} BEGIN INSERT INTO sim_log (what, id, old, new, about) "
        f"VALUES ('{table}', NEW.id, NULL, NEW.message_id, json_object('topic', NEW.topic)); END"
    )


_STEPS_IN_PHASE = """
CREATE TRIGGER sim_new_step AFTER INSERT ON step_executions BEGIN INSERT INTO sim_log (what, id, old, new, about)
SELECT 'new_step', NEW.id, p.status, NEW.status, json_object('expanded', p.expanded_at IS NOT NULL, 'batch',
NEW.batch_id, 'phase', p.id) FROM phase_executions p WHERE p.id = NEW.phase_execution_id; END
"""

# Under which version a phase of this name has begun before, if any: it was dispatched, or somebody has steps in it.
_NEW_PHASES = """
CREATE TRIGGER sim_new_phase AFTER INSERT ON phase_executions BEGIN INSERT INTO sim_log (what, id, old, new, about)
VALUES ('new_phase', NEW.id, NULL, NEW.status, json_object('batch', NEW.batch_id, 'name', NEW.phase_name,
'version', NEW.runbook_version, 'is_anew', EXISTS (SELECT 1 FROM phase_executions p
WHERE p.batch_id = NEW.batch_id AND p.runbook_version < NEW.runbook_version),
'ignores', (SELECT r.overdue_behavior = 'ignore' FROM batches b JOIN runbooks r ON r.id = b.runbook_id
WHERE b.id = NEW.batch_id), 'is_overdue', NEW.due_at <= (SELECT MAX(p.completed_at)
FROM phase_executions p WHERE p.batch_id = NEW.batch_id AND p.status = 'superseded'),
'begun', (SELECT MAX(p.runbook_version) FROM phase_executions p
WHERE p.batch_id = NEW.batch_id AND lower(p.phase_name) = lower(NEW.phase_name) AND (p.dispatched_at IS NOT NULL
OR EXISTS (SELECT 1 FROM step_executions s WHERE s.phase_execution_id = p.id))))); END
"""

_JOINING = f"""
CREATE TRIGGER sim_new_member AFTER INSERT ON batch_members BEGIN INSERT INTO sim_log (what, id, old, new, about)
SELECT 'new_member', NEW.id, NULL, NEW.status, json_object('batch', NEW.batch_id, 'key', NEW.member_key,
'held', {_IS_SHUT}, 'kind', kind, 'start', batch_start_time, 'manual', is_manual, 'excluded', {_IS_EXCLUDED})
FROM sim_batches WHERE id = NEW.batch_id; END
"""
_NEW_BATCH = """
CREATE TRIGGER sim_new_batch AFTER INSERT ON batches BEGIN INSERT INTO sim_log (what, id, old, new, about)
VALUES ('new_batch', NEW.id, NULL, NEW.status, json_object('start', NEW.batch_start_time)); END
"""

# A row that a member takes: of a tick, or because a person lets it try again.
_ROWS = """
CREATE TRIGGER sim_rows AFTER UPDATE ON batch_members WHEN OLD.data_hash IS NOT NEW.data_hash AND OLD.status = 'active'
BEGIN INSERT INTO sim_log (what, id, old, new, about) VALUES ('row', NEW.id, OLD.data_hash, NEW.data_hash,
json_object('batch', NEW.batch_id)); END
"""

# Outputs of steps, when they are merged into the member's worker data.
_OUTPUTS = """
CREATE TRIGGER sim_outputs AFTER UPDATE ON batch_members
WHEN OLD.worker_data_json IS NOT NEW.worker_data_json AND OLD.epoch = NEW.epoch BEGIN
INSERT INTO sim_log (what, id, old, new, about) VALUES ('outputs', NEW.id, OLD.worker_data_json, NEW.worker_data_json,
json_object('key', NEW.member_key_fold, 'epoch', NEW.epoch)); END
"""

# Messages that are gone from the bus, except jobs, which workers settle.
_GONE = "CREATE TABLE sim_gone (id INTEGER PRIMARY KEY, message_id TEXT)"
_GOING = """
CREATE TRIGGER sim_gone_messages AFTER DELETE ON bus_messages WHEN OLD.topic <> 'worker-jobs' BEGIN
INSERT INTO sim_gone (id, message_id) VALUES (OLD.id, OLD.message_id); END
"""

_UNDOING = """
CREATE TRIGGER sim_new_rollback AFTER INSERT ON rollback_executions WHEN NEW.batch_member_id IS NOT NULL BEGIN
INSERT INTO sim_log (what, id, old, new, about) SELECT 'new_rollback', NEW.id, NULL, NEW.status,
json_object('cause', NEW.cause, 'epoch', NEW.epoch, 'index', NEW.step_index, 'member', m.id, 'member_status', m.status,
'member_epoch', m.epoch) FROM batch_members m WHERE m.id = NEW.batch_member_id; END
"""

# Batches with what they are held for.
_HELD_BATCHES = """
CREATE VIEW sim_batches AS SELECT b.*, g.id IS NOT NULL AS is_held, COALESCE(g.kind, '') AS kind, g.hold_key,
g.approved_at IS NOT NULL AS is_approved
FROM batches b LEFT JOIN gates g ON g.batch_id = b.id AND g.opened_at IS NULL AND g.hold_key IS NOT NULL
"""


def _on_hold(name: str, when: str, fact: str) -> str:
    """Write down that a hold began, stands for something else, or ended, and how the batch stood then."""
    return (
        f"CREATE TRIGGER sim_{name} {when} BEGIN INSERT INTO sim_log (what, id, old, new, about) SELECT '{fact}', "
        "b.id, NULL, b.status, json_object('kind', NEW.kind, 'reason', NEW.reason, 'start', b.batch_start_time, "
        "'approved', NEW.approved_at IS NOT NULL) FROM batches b WHERE b.id = NEW.batch_id; END"
    )


TRIGGERS = (
    _TABLE,
    _HELD_BATCHES,
    _on_hold("hold", "AFTER INSERT ON gates WHEN NEW.hold_key IS NOT NULL", "held"),
    _on_hold(
        "release",
        "AFTER UPDATE ON gates WHEN OLD.opened_at IS NULL AND NEW.opened_at IS NOT NULL AND NEW.hold_key IS NOT NULL",
        "released",
    ),
    _on_update("step_executions", "step", f"{_WORK}, {_BATCH}, {_MEMBER}, {_STEP}, {_STEP_GATES}"),
    _on_update("init_executions", "init", f"{_WORK}, {_BATCH}, {_INIT}, {_INIT_GATES}"),
    _on_update("rollback_executions", "rollback", f"{_WORK}, {_BATCH}, {_MEMBER}, {_ROLLBACK}, {_JOB_GATES}"),
    _on_update("phase_executions", "phase", f"{_PHASES}, {_PHASE_GATES}"),
    _on_update("batches", "batch", _BATCHES, _BATCH_MOVED),
    _on_update("batch_members", "member", _MEMBERS),
    _on_message("bus_messages"),
    _on_message("outbox"),
    _STEPS_IN_PHASE,
    _NEW_PHASES,
    _JOINING,
    _ROWS,
    _NEW_BATCH,
    _OUTPUTS,
    _GONE,
    _GOING,
    _UNDOING,
    *DOOR_TRIGGERS,
)
