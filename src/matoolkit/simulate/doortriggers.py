"""What the database writes down of phases that declare gates: how it stood when somebody went through a door.

The rules are read from the runbook as it was published, and everything they rest on from rows that are not about gates.
Plays whose runbooks declare nothing pay a look into an empty table.
"""

# What stands in `place` for what is declared of no phase.
OF_INIT, OF_HOLDS = -1, -2

# What every phase of every version declares; the simulation writes runbooks in JSON.
_RULES = """
CREATE TABLE sim_rules (version INTEGER, place INTEGER, rules TEXT, publisher TEXT, PRIMARY KEY (version, place))
"""
_PUBLISHED = f"""
CREATE TRIGGER sim_published AFTER INSERT ON runbooks WHEN json_valid(NEW.yaml_content) BEGIN
INSERT INTO sim_rules (version, place, rules, publisher)
SELECT NEW.version, p.key, json_patch(p.value, json_object('steps', NULL, 'max_delay',
json_extract(NEW.yaml_content, '$.safeguards.max_delay'))), NEW.published_by
FROM json_each(NEW.yaml_content, '$.phases') p
WHERE p.value ->> 'window' IS NOT NULL OR p.value ->> 'rollout' IS NOT NULL OR p.value ->> 'approval' IS NOT NULL
OR json_extract(NEW.yaml_content, '$.safeguards.max_delay') IS NOT NULL;
INSERT INTO sim_rules (version, place, rules, publisher) SELECT NEW.version, one.place,
json_object('approval', json(one.rule)), NEW.published_by
FROM (SELECT {OF_INIT} AS place, json_extract(NEW.yaml_content, '$.init_approval') AS rule
      UNION ALL SELECT {OF_HOLDS}, json_extract(NEW.yaml_content, '$.safeguards.approval')) one
WHERE one.rule IS NOT NULL; END
"""
# Everybody who is in a batch, each in its epoch: what people sign off.
LISTED = """
(SELECT group_concat(id || ':' || epoch) FROM (SELECT id, epoch FROM batch_members
 WHERE batch_id = {batch} AND status = 'active' ORDER BY id))
"""
_START = "(SELECT batch_start_time FROM batches WHERE id = NEW.batch_id)"
_FOLLOWS = "(SELECT r.version FROM batches b JOIN runbooks r ON r.id = b.runbook_id WHERE b.id = NEW.batch_id)"
_MANUAL = "(SELECT is_manual FROM batches WHERE id = NEW.batch_id)"
# How many members were active when a phase began for all.
_BEGUN = "CREATE TABLE sim_begun (phase INTEGER PRIMARY KEY, members INTEGER)"
_BEGINS = f"""
CREATE TRIGGER sim_begins AFTER UPDATE ON phase_executions
WHEN OLD.status <> 'dispatched' AND NEW.status = 'dispatched' AND EXISTS (SELECT 1 FROM sim_rules) BEGIN
INSERT OR REPLACE INTO sim_begun (phase, members) SELECT NEW.id, (SELECT COUNT(*) FROM batch_members
WHERE batch_id = NEW.batch_id AND status = 'active') WHERE OLD.status = 'pending';
INSERT INTO sim_log (what, id, old, new, about) SELECT 'phase_door', NEW.id, OLD.status, NEW.status,
json_object('at', NEW.dispatched_at, 'phase', NEW.id, 'batch', NEW.batch_id, 'version', NEW.runbook_version,
'rules', json(r.rules), 'publisher', r.publisher, 'due', NEW.due_at, 'start', {_START}, 'manual', {_MANUAL},
'listed', {LISTED.format(batch="NEW.batch_id")},
'let_in', (SELECT COUNT(*) FROM sim_let_in WHERE phase = NEW.id AND due IS NEW.due_at)) FROM sim_rules r
WHERE r.version = NEW.runbook_version AND r.place = NEW.phase_index; END
"""
_OPEN = "('pending', 'dispatched', 'polling')"
_MINE = "s.phase_execution_id = {phase} AND s.batch_member_id"
_PRESENT = f"SELECT 1 FROM step_executions s WHERE {_MINE} = m.id AND s.epoch = m.epoch"
_IN = "FROM batch_members m WHERE m.batch_id = {batch} AND m.is_pilot"
# Pilots who are still there and have not ended the phase. Nobody waits for one who begins with a later phase, or goes
# through the phases of a newer version.
_IS_FOLLOWED = """EXISTS (SELECT 1 FROM phase_executions mine JOIN batches b ON b.id = mine.batch_id
 JOIN runbooks r ON r.id = b.runbook_id WHERE mine.id = {phase} AND mine.runbook_version = r.version)"""
PILOTS_YET = f"""
(SELECT COUNT(*) {_IN} AND m.status = 'active'
 AND (m.caught_up_at IS NULL OR EXISTS ({_PRESENT} AND s.status IN {_OPEN})
      OR (m.first_phase_version IS NULL AND {_IS_FOLLOWED} AND NOT EXISTS ({_PRESENT}))))
"""
PILOTS_ENDED = f"""
(SELECT MAX(s.completed_at) FROM batch_members m JOIN step_executions s ON {_MINE} = m.id AND s.epoch = m.epoch
 WHERE m.batch_id = {{batch}} AND m.is_pilot AND m.status <> 'removed')
"""
# Who was undone or excluded after it had begun counts as failed, and those who left otherwise do not.
_TAKEN_BACK = "m.status = 'removed' AND (m.undone_at IS NOT NULL OR m.remove_reason = 'excluded by a person')"
_PILOTS_FAILED = f"""
(SELECT COUNT(*) {_IN} AND (EXISTS ({_PRESENT} AND s.status IN ('failed', 'poll_timeout'))
 OR ({_TAKEN_BACK} AND EXISTS ({_PRESENT}))))
"""
_PILOTS_THROUGH = f"""
(SELECT COUNT(*) {_IN} AND NOT ({_TAKEN_BACK}) AND EXISTS ({_PRESENT})
 AND NOT EXISTS ({_PRESENT} AND s.status <> 'succeeded'))
"""
FAILED = """
(SELECT COUNT(DISTINCT s.batch_member_id) FROM step_executions s JOIN batch_members m ON m.id = s.batch_member_id
 AND m.epoch = s.epoch WHERE s.phase_execution_id = {phase} AND s.status IN ('failed', 'poll_timeout'))
"""
# What became of the members in a phase and in the earlier ones of its version, by the rows of their steps.
_OF = {"batch": "of.batch_id", "phase": "of.id"}
_BUDGET = f"""json_object('phase', of.id, 'rules', json(of_rules.rules), 'members', sim_begun.members,
 'failed', {FAILED.format(**_OF)}, 'pilots', (SELECT COUNT(*) {_IN.format(**_OF)}),
 'pilots_failed', {_PILOTS_FAILED.format(**_OF)}, 'pilots_yet', {PILOTS_YET.format(**_OF)},
 'pilots_through', {_PILOTS_THROUGH.format(**_OF)},
 'opened_for', (SELECT g.allowed FROM gates g WHERE g.kind = 'budget' AND g.phase_execution_id = of.id
  AND g.opened_at IS NOT NULL ORDER BY g.id DESC LIMIT 1))"""
_BUDGETS = f"""
(SELECT json_group_array({_BUDGET})
 FROM phase_executions of JOIN phase_executions mine ON mine.id = NEW.phase_execution_id
 AND of.batch_id = mine.batch_id AND of.runbook_version = mine.runbook_version
 AND (-of.offset_minutes, of.phase_index) <= (-mine.offset_minutes, mine.phase_index) AND of.status = 'dispatched'
 JOIN sim_rules of_rules ON of_rules.version = of.runbook_version AND of_rules.place = of.phase_index
 JOIN sim_begun ON sim_begun.phase = of.id
 WHERE of_rules.rules ->> '$.rollout.max_failures' IS NOT NULL OR of_rules.rules ->> '$.rollout.pilot_first')
"""
_HERE = {"batch": "NEW.batch_id", "phase": "NEW.phase_execution_id"}
_DOORS = f"""
CREATE TRIGGER sim_doors AFTER UPDATE ON step_executions
WHEN OLD.status IS NOT NEW.status AND EXISTS (SELECT 1 FROM sim_rules) BEGIN
INSERT INTO sim_log (what, id, old, new, about) SELECT 'door', NEW.id, OLD.status, NEW.status, json_object(
'job', NEW.job_id, 'index', NEW.step_index, 'at', NEW.dispatched_at, 'phase', p.id, 'batch', NEW.batch_id,
'member', NEW.batch_member_id, 'epoch', NEW.epoch, 'rules', json(r.rules), 'is_pilot', (SELECT is_pilot
FROM batch_members WHERE id = NEW.batch_member_id), 'version', p.runbook_version, 'start', {_START},
'publisher', r.publisher, 'open_here', (SELECT COUNT(*) FROM step_executions s
WHERE {_MINE.format(**_HERE)} = NEW.batch_member_id AND s.epoch = NEW.epoch AND s.status IN {_OPEN}),
'facts', CASE WHEN NEW.status = 'dispatched' AND NEW.step_index = 0 THEN json_object(
'is_for_all', p.id IN (SELECT phase FROM sim_begun), 'pilots_yet', {PILOTS_YET.format(**_HERE)},
'pilots_ended', {PILOTS_ENDED.format(**_HERE)}, 'budgets', {_BUDGETS}) END)
FROM phase_executions p JOIN sim_rules r ON r.version = p.runbook_version AND r.place = p.phase_index
WHERE p.id = NEW.phase_execution_id; END
"""
_INIT_DOORS = f"""
CREATE TRIGGER sim_init_doors AFTER UPDATE ON init_executions
WHEN OLD.status IS NOT NEW.status AND NEW.status = 'dispatched' AND NEW.step_index = 0 BEGIN
INSERT INTO sim_log (what, id, old, new, about) SELECT 'init_door', NEW.id, OLD.status, NEW.status, json_object(
'job', NEW.job_id, 'at', NEW.dispatched_at, 'batch', NEW.batch_id, 'version', NEW.runbook_version, 'start', {_START},
'rules', json(r.rules), 'publisher', r.publisher, 'listed', {LISTED.format(batch="NEW.batch_id")})
FROM sim_rules r WHERE r.version = NEW.runbook_version AND r.place = {OF_INIT}; END
"""
# Phases that have begun while an earlier one of their batch and version waits that was due then (rule G9).
OVERTAKEN = """
SELECT p.id, p.dispatched_at, earlier.id, earlier.due_at FROM phase_executions p JOIN phase_executions earlier
ON earlier.batch_id = p.batch_id AND earlier.runbook_version = p.runbook_version
AND (-earlier.offset_minutes, earlier.phase_index) < (-p.offset_minutes, p.phase_index)
WHERE p.id IN ({ids}) AND earlier.status = 'pending' AND earlier.due_at <= p.dispatched_at
"""

# What somebody signed: who was in the batch at that moment, and what the runbook asks of those who sign.
_RULE_SIGNED = f"""
(SELECT json_object('rules', json(r.rules), 'publisher', r.publisher) FROM sim_rules r
 WHERE r.version = NEW.runbook_version AND r.place = CASE NEW.subject WHEN 'init' THEN {OF_INIT}
 WHEN 'hold' THEN {OF_HOLDS} ELSE (SELECT phase_index FROM phase_executions WHERE id = NEW.phase_execution_id) END)
"""
_SIGNED = f"""
CREATE TRIGGER sim_signed AFTER INSERT ON approvals BEGIN
INSERT INTO sim_log (what, id, old, new, about) VALUES ('signed', NEW.id, NEW.subject, NEW.decision, json_object(
'batch', NEW.batch_id, 'phase', NEW.phase_execution_id, 'hold', NEW.hold_key, 'version', NEW.runbook_version,
'start', NEW.batch_start_time, 'by', NEW.signed_by, 'signed_in', NEW.is_signed_in, 'at', NEW.signed_at,
'now_start', {_START}, 'follows', {_FOLLOWS}, 'manual', {_MANUAL},
'phase_status', (SELECT status FROM phase_executions WHERE id = NEW.phase_execution_id),
'let_in', (SELECT COUNT(*) FROM sim_let_in l WHERE l.batch = NEW.batch_id AND l.phase IS NEW.phase_execution_id),
'listed', {LISTED.format(batch="NEW.batch_id")}, 'declared', json({_RULE_SIGNED}))); END
"""
_WITHDRAWN = """
CREATE TRIGGER sim_withdrawn AFTER UPDATE ON approvals WHEN OLD.withdrawn_at IS NULL AND NEW.withdrawn_at IS NOT NULL
BEGIN INSERT INTO sim_log (what, id, old, new, about) VALUES ('withdrawn', NEW.id, NEW.decision, NEW.signed_by,
json_object('batch', NEW.batch_id)); END
"""
_HOLD_SIGNED = f"""
CREATE TRIGGER sim_hold_approved AFTER UPDATE ON gates WHEN OLD.approved_at IS NULL AND NEW.approved_at IS NOT NULL
BEGIN INSERT INTO sim_log (what, id, old, new, about) SELECT 'hold_approved', NEW.batch_id, NULL, NEW.hold_key,
json_object('batch', NEW.batch_id, 'at', NEW.approved_at, 'version', r.version, 'start', {_START},
'rules', json(r.rules), 'publisher', r.publisher, 'listed', NULL)
FROM sim_rules r WHERE r.version = {_FOLLOWS} AND r.place = {OF_HOLDS}; END
"""
# What people let in although it was late, with the time at which it was due.
_LET_IN = "CREATE TABLE sim_let_in (batch INTEGER, phase INTEGER, due TEXT)"
_LETS_IN = """
CREATE TRIGGER sim_lets_in AFTER UPDATE ON gates WHEN OLD.opened_at IS NULL AND NEW.opened_at IS NOT NULL
AND NEW.kind = 'late' AND NEW.hold_key IS NULL AND NEW.opened_by NOT IN ('calendar', 'system') BEGIN
INSERT INTO sim_let_in (batch, phase, due) VALUES (NEW.batch_id, NEW.phase_execution_id,
(SELECT due_at FROM phase_executions WHERE id = NEW.phase_execution_id)); END
"""
# How it stood with a phase when too many seemed to have failed in it.
_BUDGET_SHUT = f"""
CREATE TRIGGER sim_budget_shut AFTER INSERT ON gates WHEN NEW.kind = 'budget' BEGIN
INSERT INTO sim_log (what, id, old, new, about) SELECT 'budget_shut', NEW.id, NULL, NEW.reach, {_BUDGET}
FROM phase_executions of JOIN sim_rules of_rules ON of_rules.version = of.runbook_version
AND of_rules.place = of.phase_index LEFT JOIN sim_begun ON sim_begun.phase = of.id
WHERE of.id = NEW.phase_execution_id; END
"""
# How many had failed in a phase when a person opened its budget.
_BUDGET_OPENED = f"""
CREATE TRIGGER sim_budget_opened AFTER UPDATE ON gates WHEN OLD.opened_at IS NULL AND NEW.opened_at IS NOT NULL
AND NEW.kind = 'budget' BEGIN
INSERT INTO sim_log (what, id, old, new, about) VALUES ('budget_opened', NEW.id, NULL, NEW.opened_by, json_object(
'failed', {FAILED.format(phase="NEW.phase_execution_id")}, 'allowed', NEW.allowed)); END
"""
# When the jobs behind a gate have been taken back.
_SWEPT = """
CREATE TRIGGER sim_swept AFTER UPDATE ON gates WHEN OLD.swept_at IS NULL AND NEW.swept_at IS NOT NULL
AND NEW.opened_at IS NULL AND NEW.reach = 'send' BEGIN
INSERT INTO sim_log (what, id, old, new, about) VALUES ('swept', NEW.id, NULL, NEW.kind, '{}'); END
"""

DOOR_TRIGGERS = (
    _RULES,
    _PUBLISHED,
    _BEGUN,
    _LET_IN,
    _BEGINS,
    _DOORS,
    _INIT_DOORS,
    _SIGNED,
    _WITHDRAWN,
    _HOLD_SIGNED,
    _LETS_IN,
    _BUDGET_SHUT,
    _BUDGET_OPENED,
    _SWEPT,
)
