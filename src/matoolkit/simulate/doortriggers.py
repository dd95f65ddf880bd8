"""What the database writes down of phases that declare gates: how it stood when somebody went through a door.

The rules are read from the runbook as it was published, and everything they rest on from rows that are not about gates.
Plays whose runbooks declare nothing pay a look into an empty table.
"""

# What every phase of every version declares; the simulation writes runbooks in JSON.
_RULES = """
CREATE TABLE sim_rules (version INTEGER, place INTEGER, rules TEXT, publisher TEXT, PRIMARY KEY (version, place))
"""
_PUBLISHED = """
CREATE TRIGGER sim_published AFTER INSERT ON runbooks WHEN json_valid(NEW.yaml_content) BEGIN
INSERT INTO sim_rules (version, place, rules, publisher)
SELECT NEW.version, p.key, json_patch(p.value, json_object('steps', NULL, 'max_delay',
json_extract(NEW.yaml_content, '$.safeguards.max_delay'))), NEW.published_by
FROM json_each(NEW.yaml_content, '$.phases') p
WHERE p.value ->> 'window' IS NOT NULL OR p.value ->> 'rollout' IS NOT NULL OR p.value ->> 'approval' IS NOT NULL
OR json_extract(NEW.yaml_content, '$.safeguards.max_delay') IS NOT NULL; END
"""
# How many members were active when a phase began for all.
_BEGUN = "CREATE TABLE sim_begun (phase INTEGER PRIMARY KEY, members INTEGER)"
_BEGINS = """
CREATE TRIGGER sim_begins AFTER UPDATE ON phase_executions
WHEN OLD.status = 'pending' AND NEW.status = 'dispatched' AND EXISTS (SELECT 1 FROM sim_rules) BEGIN
INSERT OR REPLACE INTO sim_begun (phase, members) SELECT NEW.id, COUNT(*) FROM batch_members
WHERE batch_id = NEW.batch_id AND status = 'active';
INSERT INTO sim_log (what, id, old, new, about) SELECT 'phase_door', NEW.id, OLD.status, NEW.status,
json_object('at', NEW.dispatched_at, 'batch', NEW.batch_id, 'rules', json(r.rules), 'due', NEW.due_at, 'manual',
(SELECT is_manual FROM batches WHERE id = NEW.batch_id)) FROM sim_rules r
WHERE r.version = NEW.runbook_version AND r.place = NEW.phase_index; END
"""
_OPEN = "('pending', 'dispatched', 'polling')"
_MINE = "s.phase_execution_id = NEW.phase_execution_id AND s.batch_member_id"
# Pilots who are still there and have not ended the phase; one who begins with a later phase is not waited for.
_PILOTS_YET = f"""
(SELECT COUNT(*) FROM batch_members m WHERE m.batch_id = NEW.batch_id AND m.is_pilot AND m.status = 'active'
 AND (EXISTS (SELECT 1 FROM step_executions s WHERE {_MINE} = m.id AND s.epoch = m.epoch AND s.status IN {_OPEN})
      OR (m.caught_up_at IS NOT NULL AND m.first_phase_version IS NULL AND NOT EXISTS
          (SELECT 1 FROM step_executions s WHERE {_MINE} = m.id AND s.epoch = m.epoch))))
"""
_PILOTS_ENDED = f"""
(SELECT MAX(s.completed_at) FROM batch_members m JOIN step_executions s ON {_MINE} = m.id AND s.epoch = m.epoch
 WHERE m.batch_id = NEW.batch_id AND m.is_pilot AND m.status = 'active')
"""
# How many failed in a phase and in the earlier ones of its version, by the rows of their steps.
_FAILED = """
(SELECT json_group_array(json_object('phase', of.id, 'rules', json(of_rules.rules), 'members',
 (SELECT members FROM sim_begun WHERE phase = of.id), 'failed', (SELECT COUNT(*) FROM batch_members m
  WHERE m.batch_id = NEW.batch_id AND m.status = 'failed' AND EXISTS (SELECT 1 FROM step_executions s
  WHERE s.phase_execution_id = of.id AND s.batch_member_id = m.id AND s.epoch = m.epoch
  AND s.status IN ('failed', 'poll_timeout'))),
 'opened', (SELECT COUNT(*) FROM gates g WHERE g.kind = 'budget' AND g.phase_execution_id = of.id
  AND g.opened_at IS NOT NULL)))
 FROM phase_executions of JOIN phase_executions mine ON mine.id = NEW.phase_execution_id
 AND of.batch_id = mine.batch_id AND of.runbook_version = mine.runbook_version
 AND (-of.offset_minutes, of.phase_index) <= (-mine.offset_minutes, mine.phase_index)
 JOIN sim_rules of_rules ON of_rules.version = of.runbook_version AND of_rules.place = of.phase_index
 WHERE of_rules.rules ->> '$.rollout.max_failures' IS NOT NULL AND of.member_count IS NOT NULL)
"""
_DOORS = f"""
CREATE TRIGGER sim_doors AFTER UPDATE ON step_executions
WHEN OLD.status IS NOT NEW.status AND EXISTS (SELECT 1 FROM sim_rules) BEGIN
INSERT INTO sim_log (what, id, old, new, about) SELECT 'door', NEW.id, OLD.status, NEW.status, json_object(
'job', NEW.job_id, 'index', NEW.step_index, 'at', NEW.dispatched_at, 'phase', p.id, 'batch', NEW.batch_id,
'member', NEW.batch_member_id, 'epoch', NEW.epoch, 'rules', json(r.rules), 'is_pilot', (SELECT is_pilot
FROM batch_members WHERE id = NEW.batch_member_id), 'open_here', (SELECT COUNT(*) FROM step_executions s
WHERE {_MINE} = NEW.batch_member_id AND s.status IN {_OPEN}),
'facts', CASE WHEN NEW.status = 'dispatched' AND NEW.step_index = 0 THEN json_object('pilots_yet', {_PILOTS_YET},
'pilots_ended', {_PILOTS_ENDED}, 'failed', {_FAILED}) END)
FROM phase_executions p JOIN sim_rules r ON r.version = p.runbook_version AND r.place = p.phase_index
WHERE p.id = NEW.phase_execution_id; END
"""
# Phases that have begun while an earlier one of their batch and version waits that was due then (rule G9).
OVERTAKEN = """
SELECT p.id, p.dispatched_at, earlier.id, earlier.due_at FROM phase_executions p JOIN phase_executions earlier
ON earlier.batch_id = p.batch_id AND earlier.runbook_version = p.runbook_version
AND (-earlier.offset_minutes, earlier.phase_index) < (-p.offset_minutes, p.phase_index)
WHERE p.id IN ({ids}) AND earlier.status = 'pending' AND earlier.due_at <= p.dispatched_at
"""

DOOR_TRIGGERS = (_RULES, _PUBLISHED, _BEGUN, _BEGINS, _DOORS)
