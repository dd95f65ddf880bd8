-- store.audit.audit_page
SELECT TOP 7 audit_log.id, audit_log.at, audit_log.actor, audit_log.action, audit_log.subject_type, audit_log.subject_id, audit_log.runbook_name, audit_log.batch_id, audit_log.before_json, audit_log.after_json, audit_log.reason 
FROM audit_log 
WHERE audit_log.subject_type = :subject_type_1 AND audit_log.subject_id = :subject_id_1 AND audit_log.batch_id = :batch_id_1 AND audit_log.runbook_name = :runbook_name_1 AND audit_log.actor = :actor_1 AND audit_log.id < :id_1 ORDER BY audit_log.id DESC
GO

-- store.audit.record_changes
INSERT INTO audit_log (actor, action, subject_type, subject_id, runbook_name, batch_id, before_json, after_json, reason, at) OUTPUT inserted.id SELECT TOP 2147483647 anon_1.actor AS actor, anon_1.action AS action, anon_1.subject_type AS subject_type, anon_1.subject_id AS subject_id, anon_1.runbook_name AS runbook_name, anon_1.batch_id AS batch_id, anon_1.before_json AS before_json, anon_1.after_json AS after_json, anon_1.reason AS reason, :p_shared_at AS at 
FROM (SELECT CAST([actor] AS NVARCHAR(201)) AS [actor], CAST([action] AS NVARCHAR(101)) AS [action], CAST([subject_type] AS NVARCHAR(51)) AS [subject_type], CAST([subject_id] AS NVARCHAR(201)) AS [subject_id], CAST([runbook_name] AS NVARCHAR(101)) AS [runbook_name], [batch_id], [before_json], [after_json], [reason], [place] FROM OPENJSON(:p_rows) WITH ([actor] NVARCHAR(MAX) '$[0]', [action] NVARCHAR(MAX) '$[1]', [subject_type] NVARCHAR(MAX) '$[2]', [subject_id] NVARCHAR(MAX) '$[3]', [runbook_name] NVARCHAR(MAX) '$[4]', [batch_id] BIGINT '$[5]', [before_json] NVARCHAR(MAX) '$[6]', [after_json] NVARCHAR(MAX) '$[7]', [reason] NVARCHAR(MAX) '$[8]', [place] BIGINT '$[9]')) AS anon_1 ORDER BY anon_1.place
GO

-- store.automation.automated_runbooks
SELECT runbook_automation_settings.runbook_key 
FROM runbook_automation_settings 
WHERE runbook_automation_settings.automation_enabled = 1
GO

-- store.automation.automation_of
SELECT runbook_automation_settings.runbook_name, runbook_automation_settings.automation_enabled, runbook_automation_settings.enabled_at, runbook_automation_settings.enabled_by, runbook_automation_settings.disabled_at, runbook_automation_settings.disabled_by 
FROM runbook_automation_settings 
WHERE runbook_automation_settings.runbook_key = :p_key
GO

-- store.automation.disable_automation
INSERT INTO runbook_automation_settings (runbook_key, runbook_name, automation_enabled, disabled_at, disabled_by) SELECT TOP 2147483647 anon_1.runbook_key AS runbook_key, :p_shared_runbook_name AS runbook_name, :p_shared_automation_enabled AS automation_enabled, :p_shared_disabled_at AS disabled_at, :p_shared_disabled_by AS disabled_by 
FROM (SELECT CAST([runbook_key] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [runbook_key], [place] FROM OPENJSON(:p_rows) WITH ([runbook_key] NVARCHAR(MAX) '$[0]', [place] BIGINT '$[1]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM runbook_automation_settings AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.runbook_key = anon_1.runbook_key)) ORDER BY anon_1.place
GO

-- store.automation.disable_automation
UPDATE runbook_automation_settings SET automation_enabled=:p_values_automation_enabled, disabled_at=:p_values_disabled_at, disabled_by=:p_values_disabled_by WHERE runbook_automation_settings.runbook_key = :p_key
GO

-- store.automation.enable_automation
INSERT INTO runbook_automation_settings (runbook_key, runbook_name, automation_enabled, enabled_at, enabled_by) SELECT TOP 2147483647 anon_1.runbook_key AS runbook_key, :p_shared_runbook_name AS runbook_name, :p_shared_automation_enabled AS automation_enabled, :p_shared_enabled_at AS enabled_at, :p_shared_enabled_by AS enabled_by 
FROM (SELECT CAST([runbook_key] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [runbook_key], [place] FROM OPENJSON(:p_rows) WITH ([runbook_key] NVARCHAR(MAX) '$[0]', [place] BIGINT '$[1]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM runbook_automation_settings AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.runbook_key = anon_1.runbook_key)) ORDER BY anon_1.place
GO

-- store.automation.enable_automation
UPDATE runbook_automation_settings SET automation_enabled=:p_values_automation_enabled, enabled_at=:p_values_enabled_at, enabled_by=:p_values_enabled_by WHERE runbook_automation_settings.runbook_key = :p_key
GO

-- store.automation.last_tick
SELECT runbook_ticks.runbook_name, runbook_ticks.runbook_version, runbook_ticks.started_at, runbook_ticks.finished_at, runbook_ticks.queried, runbook_ticks.rows_read, runbook_ticks.rows_set_aside, runbook_ticks.rows_ignored, runbook_ticks.batches_created, runbook_ticks.batches_rescheduled, runbook_ticks.batches_held, runbook_ticks.members_added, runbook_ticks.members_removed, runbook_ticks.members_moved, runbook_ticks.members_returned, runbook_ticks.members_refreshed, runbook_ticks.phases_dispatched, runbook_ticks.set_aside_json, runbook_ticks.remarks_json 
FROM runbook_ticks 
WHERE runbook_ticks.runbook_key = :runbook_key_1
GO

-- store.automation.last_ticks
SELECT runbook_ticks.runbook_name, runbook_ticks.runbook_version, runbook_ticks.started_at, runbook_ticks.finished_at, runbook_ticks.queried, runbook_ticks.rows_read, runbook_ticks.rows_set_aside, runbook_ticks.rows_ignored, runbook_ticks.batches_created, runbook_ticks.batches_rescheduled, runbook_ticks.batches_held, runbook_ticks.members_added, runbook_ticks.members_removed, runbook_ticks.members_moved, runbook_ticks.members_returned, runbook_ticks.members_refreshed, runbook_ticks.phases_dispatched, runbook_ticks.set_aside_json, runbook_ticks.remarks_json 
FROM runbook_ticks ORDER BY runbook_ticks.runbook_key
GO

-- store.automation.record_tick
INSERT INTO runbook_ticks (runbook_key, runbook_name, runbook_version, started_at, finished_at, queried, rows_read, rows_set_aside, rows_ignored, batches_created, batches_rescheduled, batches_held, members_added, members_removed, members_moved, members_returned, members_refreshed, phases_dispatched, set_aside_json, remarks_json) SELECT TOP 2147483647 anon_1.runbook_key AS runbook_key, :p_shared_runbook_name AS runbook_name, :p_shared_runbook_version AS runbook_version, :p_shared_started_at AS started_at, :p_shared_finished_at AS finished_at, :p_shared_queried AS queried, :p_shared_rows_read AS rows_read, :p_shared_rows_set_aside AS rows_set_aside, :p_shared_rows_ignored AS rows_ignored, :p_shared_batches_created AS batches_created, :p_shared_batches_rescheduled AS batches_rescheduled, :p_shared_batches_held AS batches_held, :p_shared_members_added AS members_added, :p_shared_members_removed AS members_removed, :p_shared_members_moved AS members_moved, :p_shared_members_returned AS members_returned, :p_shared_members_refreshed AS members_refreshed, :p_shared_phases_dispatched AS phases_dispatched, :p_shared_set_aside_json AS set_aside_json, :p_shared_remarks_json AS remarks_json 
FROM (SELECT CAST([runbook_key] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [runbook_key], [place] FROM OPENJSON(:p_rows) WITH ([runbook_key] NVARCHAR(MAX) '$[0]', [place] BIGINT '$[1]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM runbook_ticks AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.runbook_key = anon_1.runbook_key)) ORDER BY anon_1.place
GO

-- store.automation.record_tick
UPDATE runbook_ticks SET runbook_version=:p_values_runbook_version, started_at=:p_values_started_at, finished_at=:p_values_finished_at, queried=:p_values_queried, rows_read=:p_values_rows_read, rows_set_aside=:p_values_rows_set_aside, rows_ignored=:p_values_rows_ignored, batches_created=:p_values_batches_created, batches_rescheduled=:p_values_batches_rescheduled, batches_held=:p_values_batches_held, members_added=:p_values_members_added, members_removed=:p_values_members_removed, members_moved=:p_values_members_moved, members_returned=:p_values_members_returned, members_refreshed=:p_values_members_refreshed, phases_dispatched=:p_values_phases_dispatched, set_aside_json=:p_values_set_aside_json, remarks_json=:p_values_remarks_json WHERE runbook_ticks.runbook_key = :p_key
GO

-- store.batches.activate_batches
UPDATE batches SET status=:p_values_status OUTPUT inserted.id WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batches.status IN ('detected', 'init_dispatched')
GO

-- store.batches.advance_to_phase
UPDATE batches SET current_phase=:p_values_current_phase OUTPUT inserted.id WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batches.status = 'active' AND batches.is_manual = 1
GO

-- store.batches.all_unfinished_batches
SELECT batches.id, batches.runbook_id, batches.runbook_name, batches.batch_start_time, batches.status, batches.is_manual, batches.created_by, batches.current_phase, batches.detected_at, batches.init_dispatched_at, batches.init_count, batches.completed_at, batches.reopened_at, batches.hold_count, batches.removals_approved_at, hold.shut_from AS held_at, hold.kind AS gate_kind, hold.reason AS hold_reason, hold.hold_key, hold.shown_json AS hold_json, hold.approved_by AS approved_hold_by, hold.approved_at AS approved_hold_at 
FROM batches LEFT OUTER JOIN gates AS hold ON hold.batch_id = batches.id AND hold.opened_at IS NULL AND hold.hold_key IS NOT NULL 
WHERE batches.status IN ('active', 'detected', 'init_dispatched')
GO

-- store.batches.batches_at
SELECT batches.id, batches.runbook_id, batches.runbook_name, batches.batch_start_time, batches.status, batches.is_manual, batches.created_by, batches.current_phase, batches.detected_at, batches.init_dispatched_at, batches.init_count, batches.completed_at, batches.reopened_at, batches.hold_count, batches.removals_approved_at, hold.shut_from AS held_at, hold.kind AS gate_kind, hold.reason AS hold_reason, hold.hold_key, hold.shown_json AS hold_json, hold.approved_by AS approved_hold_by, hold.approved_at AS approved_hold_at 
FROM batches LEFT OUTER JOIN gates AS hold ON hold.batch_id = batches.id AND hold.opened_at IS NULL AND hold.hold_key IS NOT NULL 
WHERE batches.runbook_name = :p_runbook_name AND batches.is_manual = 0 AND batches.batch_start_time IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_times) WITH ([value] DATETIME2(6) '$[0]')) AS anon_1)
GO

-- store.batches.batches_by_id
SELECT batches.id, batches.runbook_id, batches.runbook_name, batches.batch_start_time, batches.status, batches.is_manual, batches.created_by, batches.current_phase, batches.detected_at, batches.init_dispatched_at, batches.init_count, batches.completed_at, batches.reopened_at, batches.hold_count, batches.removals_approved_at, hold.shut_from AS held_at, hold.kind AS gate_kind, hold.reason AS hold_reason, hold.hold_key, hold.shown_json AS hold_json, hold.approved_by AS approved_hold_by, hold.approved_at AS approved_hold_at 
FROM batches LEFT OUTER JOIN gates AS hold ON hold.batch_id = batches.id AND hold.opened_at IS NULL AND hold.hold_key IS NOT NULL 
WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.batches.batches_page
SELECT TOP 7 batches.id, batches.runbook_id, batches.runbook_name, batches.batch_start_time, batches.status, batches.is_manual, batches.created_by, batches.current_phase, batches.detected_at, batches.init_dispatched_at, batches.init_count, batches.completed_at, batches.reopened_at, batches.hold_count, batches.removals_approved_at, hold.shut_from AS held_at, hold.kind AS gate_kind, hold.reason AS hold_reason, hold.hold_key, hold.shown_json AS hold_json, hold.approved_by AS approved_hold_by, hold.approved_at AS approved_hold_at 
FROM batches LEFT OUTER JOIN gates AS hold ON hold.batch_id = batches.id AND hold.opened_at IS NULL AND hold.hold_key IS NOT NULL 
WHERE batches.runbook_name = :runbook_name_1 AND batches.runbook_id = :runbook_id_1 AND batches.status = :status_1 AND batches.is_manual = 1 AND (EXISTS (SELECT * 
FROM gates AS standing 
WHERE standing.batch_id = batches.id AND standing.opened_at IS NULL AND standing.hold_key IS NOT NULL)) AND batches.id < :id_1 ORDER BY batches.id DESC
GO

-- store.batches.cancel_batches
UPDATE batches SET status=:p_values_status, completed_at=:p_values_completed_at OUTPUT inserted.id WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batches.status IN ('active', 'detected', 'init_dispatched')
GO

-- store.batches.count_batches
SELECT count(*) AS count_1 
FROM batches 
WHERE batches.runbook_name = :runbook_name_1 AND batches.runbook_id = :runbook_id_1 AND batches.status = :status_1 AND batches.is_manual = 1 AND (EXISTS (SELECT * 
FROM gates AS standing 
WHERE standing.batch_id = batches.id AND standing.opened_at IS NULL AND standing.hold_key IS NOT NULL))
GO

-- store.batches.dispatch_init
UPDATE batches SET status=:p_values_status, init_dispatched_at=:p_values_init_dispatched_at, init_count=(batches.init_count + :init_count_1) OUTPUT inserted.id WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batches.status IN ('active', 'detected', 'init_dispatched')
GO

-- store.batches.follow_version
UPDATE batches SET runbook_id=:p_values_runbook_id OUTPUT inserted.id WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batches.status IN ('active', 'detected', 'init_dispatched') AND batches.is_manual = 0 AND batches.runbook_id != :g_runbook_id AND batches.runbook_name = (SELECT runbooks.name 
FROM runbooks 
WHERE runbooks.id = :g_runbook_id) AND batches.reopened_at IS NULL
GO

-- store.batches.has_batches
SELECT TOP 1 batches.id 
FROM batches 
WHERE batches.runbook_name = :p_runbook_name
GO

-- store.batches.has_manual_batches
SELECT TOP 1 batches.id 
FROM batches 
WHERE batches.runbook_name = :runbook_name_1 AND batches.is_manual = 1
GO

-- store.batches.held_batches
SELECT batches.id, batches.runbook_id, batches.runbook_name, batches.batch_start_time, batches.status, batches.is_manual, batches.created_by, batches.current_phase, batches.detected_at, batches.init_dispatched_at, batches.init_count, batches.completed_at, batches.reopened_at, batches.hold_count, batches.removals_approved_at, hold.shut_from AS held_at, hold.kind AS gate_kind, hold.reason AS hold_reason, hold.hold_key, hold.shown_json AS hold_json, hold.approved_by AS approved_hold_by, hold.approved_at AS approved_hold_at 
FROM batches LEFT OUTER JOIN gates AS hold ON hold.batch_id = batches.id AND hold.opened_at IS NULL AND hold.hold_key IS NOT NULL 
WHERE (EXISTS (SELECT * 
FROM gates AS standing 
WHERE standing.batch_id = batches.id AND standing.opened_at IS NULL AND standing.hold_key IS NOT NULL)) AND batches.runbook_name = :runbook_name_1 AND batches.runbook_id = :runbook_id_1 AND batches.status = :status_1 AND batches.is_manual = 1 AND (EXISTS (SELECT * 
FROM gates AS standing 
WHERE standing.batch_id = batches.id AND standing.opened_at IS NULL AND standing.hold_key IS NOT NULL))
GO

-- store.batches.insert_batches
INSERT INTO batches (runbook_id, runbook_name, batch_start_time, status, is_manual, created_by, init_dispatched_at, init_count, detected_at, hold_count) OUTPUT inserted.id SELECT TOP 2147483647 anon_1.runbook_id AS runbook_id, anon_1.runbook_name AS runbook_name, anon_1.batch_start_time AS batch_start_time, anon_1.status AS status, anon_1.is_manual AS is_manual, anon_1.created_by AS created_by, anon_1.init_dispatched_at AS init_dispatched_at, anon_1.init_count AS init_count, :p_shared_detected_at AS detected_at, :p_shared_hold_count AS hold_count 
FROM (SELECT [runbook_id], CAST([runbook_name] AS NVARCHAR(101)) AS [runbook_name], [batch_start_time], CAST([status] AS NVARCHAR(21)) AS [status], [is_manual], CAST([created_by] AS NVARCHAR(201)) AS [created_by], [init_dispatched_at], [init_count], [place] FROM OPENJSON(:p_rows) WITH ([runbook_id] BIGINT '$[0]', [runbook_name] NVARCHAR(MAX) '$[1]', [batch_start_time] DATETIME2(6) '$[2]', [status] NVARCHAR(MAX) '$[3]', [is_manual] BIT '$[4]', [created_by] NVARCHAR(MAX) '$[5]', [init_dispatched_at] DATETIME2(6) '$[6]', [init_count] BIGINT '$[7]', [place] BIGINT '$[8]')) AS anon_1 ORDER BY anon_1.place
GO

-- store.batches.insert_batches
SELECT batches.id, batches.runbook_id, batches.runbook_name, batches.batch_start_time, batches.status, batches.is_manual, batches.created_by, batches.current_phase, batches.detected_at, batches.init_dispatched_at, batches.init_count, batches.completed_at, batches.reopened_at, batches.hold_count, batches.removals_approved_at, hold.shut_from AS held_at, hold.kind AS gate_kind, hold.reason AS hold_reason, hold.hold_key, hold.shown_json AS hold_json, hold.approved_by AS approved_hold_by, hold.approved_at AS approved_hold_at 
FROM batches LEFT OUTER JOIN gates AS hold ON hold.batch_id = batches.id AND hold.opened_at IS NULL AND hold.hold_key IS NOT NULL 
WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.batches.lock_batches
SELECT batches.id, batches.runbook_id, batches.runbook_name, batches.batch_start_time, batches.status, batches.is_manual, batches.created_by, batches.current_phase, batches.detected_at, batches.init_dispatched_at, batches.init_count, batches.completed_at, batches.reopened_at, batches.hold_count, batches.removals_approved_at 
FROM batches WITH (UPDLOCK, ROWLOCK) 
WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) ORDER BY batches.id
GO

-- store.batches.lock_batches
SELECT batches.id, batches.runbook_id, batches.runbook_name, batches.batch_start_time, batches.status, batches.is_manual, batches.created_by, batches.current_phase, batches.detected_at, batches.init_dispatched_at, batches.init_count, batches.completed_at, batches.reopened_at, batches.hold_count, batches.removals_approved_at, hold.shut_from AS held_at, hold.kind AS gate_kind, hold.reason AS hold_reason, hold.hold_key, hold.shown_json AS hold_json, hold.approved_by AS approved_hold_by, hold.approved_at AS approved_hold_at 
FROM batches LEFT OUTER JOIN gates AS hold ON hold.batch_id = batches.id AND hold.opened_at IS NULL AND hold.hold_key IS NOT NULL 
WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.batches.lock_narrow_batches
SELECT batches.id, batches.runbook_id, batches.runbook_name, batches.batch_start_time, batches.status, batches.is_manual, batches.created_by, batches.current_phase, batches.detected_at, batches.init_dispatched_at, batches.init_count, batches.completed_at, batches.reopened_at, batches.hold_count, batches.removals_approved_at 
FROM batches WITH (UPDLOCK, ROWLOCK) 
WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) ORDER BY batches.id
GO

-- store.batches.move_batches
UPDATE batches SET status=:p_values_status, completed_at=:p_values_completed_at OUTPUT inserted.id WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batches.status = 'active'
GO

-- store.batches.note_removals_approved
UPDATE batches SET removals_approved_at=:p_values_removals_approved_at OUTPUT inserted.id WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batches.status IN ('active', 'detected', 'init_dispatched')
GO

-- store.batches.reopen_batches
UPDATE batches SET status=:p_values_status, completed_at=:p_values_completed_at, reopened_at=:p_values_reopened_at OUTPUT inserted.id WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batches.status IN ('completed', 'failed')
GO

-- store.batches.reopen_inits
UPDATE batches SET status=:p_values_status, completed_at=:p_values_completed_at, reopened_at=:p_values_reopened_at OUTPUT inserted.id WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batches.status = 'failed'
GO

-- store.batches.reschedule_batches
UPDATE batches SET batch_start_time=anon_1.batch_start_time OUTPUT inserted.id FROM batches, (SELECT [id], [batch_start_time] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [batch_start_time] DATETIME2(6) '$[1]')) AS anon_1 WHERE batches.id = anon_1.id AND batches.status IN ('active', 'detected', 'init_dispatched') AND batches.is_manual = 0
GO

-- store.batches.reschedule_batches
UPDATE batches SET batch_start_time=anon_1.batch_start_time OUTPUT inserted.id FROM batches, (SELECT [id], [batch_start_time] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [batch_start_time] DATETIME2(6) '$[1]')) AS anon_1 WHERE batches.id = anon_1.id AND batches.status IN ('active', 'detected', 'init_dispatched') AND batches.is_manual = 0
GO

-- store.batches.take_version
UPDATE batches SET runbook_id=:p_values_runbook_id OUTPUT inserted.id WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batches.status IN ('active', 'detected', 'init_dispatched') AND batches.runbook_id != :g_runbook_id AND batches.runbook_name = (SELECT runbooks.name 
FROM runbooks 
WHERE runbooks.id = :g_runbook_id)
GO

-- store.batches.unfinished_batches
SELECT batches.id, batches.runbook_id, batches.runbook_name, batches.batch_start_time, batches.status, batches.is_manual, batches.created_by, batches.current_phase, batches.detected_at, batches.init_dispatched_at, batches.init_count, batches.completed_at, batches.reopened_at, batches.hold_count, batches.removals_approved_at, hold.shut_from AS held_at, hold.kind AS gate_kind, hold.reason AS hold_reason, hold.hold_key, hold.shown_json AS hold_json, hold.approved_by AS approved_hold_by, hold.approved_at AS approved_hold_at 
FROM batches LEFT OUTER JOIN gates AS hold ON hold.batch_id = batches.id AND hold.opened_at IS NULL AND hold.hold_key IS NOT NULL 
WHERE batches.runbook_name = :p_runbook_name AND batches.status IN ('active', 'detected', 'init_dispatched')
GO

-- store.catalogue.announce_functions
DELETE FROM worker_functions WHERE worker_functions.worker_id = :worker_id_1 AND worker_functions.announced_at <= :announced_at_1
GO

-- store.catalogue.announce_functions
SELECT max(worker_functions.announced_at) AS max_1 
FROM worker_functions 
WHERE worker_functions.worker_id = :worker_id_1
GO

-- store.catalogue.announce_functions
INSERT INTO worker_functions (function_name, parameters_json, worker_id, announced_at) SELECT TOP 2147483647 anon_1.function_name AS function_name, anon_1.parameters_json AS parameters_json, :p_shared_worker_id AS worker_id, :p_shared_announced_at AS announced_at 
FROM (SELECT CAST([function_name] AS NVARCHAR(201)) AS [function_name], [parameters_json], [place] FROM OPENJSON(:p_rows) WITH ([function_name] NVARCHAR(MAX) '$[0]', [parameters_json] NVARCHAR(MAX) '$[1]', [place] BIGINT '$[2]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM worker_functions AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.worker_id = :p_shared_worker_id AND there.function_name = anon_1.function_name)) ORDER BY anon_1.place
GO

-- store.catalogue.known_functions
SELECT worker_functions.worker_id, worker_functions.function_name, worker_functions.parameters_json, worker_functions.announced_at 
FROM worker_functions ORDER BY worker_functions.worker_id, worker_functions.function_name
GO

-- store.cohorts.allow_failures
UPDATE gates SET allowed=:p_values_allowed OUTPUT inserted.id WHERE gates.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND gates.opened_at IS NULL
GO

-- store.cohorts.budget_gates_of
SELECT gates.phase_execution_id, gates.id, gates.opened_at, gates.allowed 
FROM gates 
WHERE gates.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_phase_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND gates.kind = 'budget' ORDER BY gates.id
GO

-- store.cohorts.data_of_active_members
SELECT TOP 7 batch_members.id, batch_members.data_json 
FROM batch_members 
WHERE batch_members.batch_id = :p_batch_id AND batch_members.status = 'active' AND batch_members.id > :p_after ORDER BY batch_members.id
GO

-- store.cohorts.failures_in
SELECT step_executions.phase_execution_id, count(DISTINCT step_executions.batch_member_id) AS count_1 
FROM step_executions JOIN batch_members ON batch_members.id = step_executions.batch_member_id AND batch_members.epoch = step_executions.epoch 
WHERE step_executions.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_phase_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status IN ('failed', 'poll_timeout') GROUP BY step_executions.phase_execution_id
GO

-- store.cohorts.first_active_members
SELECT TOP 7 batch_members.id 
FROM batch_members 
WHERE batch_members.batch_id = :p_batch_id AND batch_members.status = 'active' ORDER BY batch_members.id
GO

-- store.cohorts.make_pilots
UPDATE batch_members SET is_pilot=:p_values_is_pilot OUTPUT inserted.id WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.cohorts.note_members_of_phases
UPDATE phase_executions SET member_count=anon_1.member_count OUTPUT inserted.id FROM phase_executions, (SELECT [id], [member_count] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [member_count] BIGINT '$[1]')) AS anon_1 WHERE phase_executions.id = anon_1.id
GO

-- store.cohorts.note_pilots_done
UPDATE phase_executions SET pilot_done_at=:p_values_pilot_done_at OUTPUT inserted.id WHERE phase_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.cohorts.phases_after_pilots
SELECT phase_executions.id, phase_executions.batch_id, phase_executions.runbook_version, phase_executions.phase_name, phase_executions.phase_index, phase_executions.offset_minutes, phase_executions.due_at, phase_executions.status, phase_executions.dispatched_at, phase_executions.dispatch_count, phase_executions.expanded_at, phase_executions.completed_at, phase_executions.member_count, phase_executions.pilot_done_at, phase_executions.woken_at, phase_executions.late_after 
FROM phase_executions JOIN batches ON batches.id = phase_executions.batch_id 
WHERE phase_executions.status = 'dispatched' AND phase_executions.pilot_done_at IS NOT NULL AND batches.status IN ('active', 'detected', 'init_dispatched') ORDER BY phase_executions.id
GO

-- store.cohorts.pilot_tallies
SELECT anon_1.phase_execution_id, count(*) AS pilots, sum(CASE WHEN (anon_1.[open] > 0 OR anon_1.catches_up > 0) THEN 1 ELSE 0 END) AS [open], sum(CASE WHEN (anon_1.failed > 0 OR anon_1.steps > 0 AND anon_1.taken_back > 0) THEN 1 ELSE 0 END) AS failed, sum(CASE WHEN (anon_1.steps > 0 AND anon_1.taken_back <= 0 AND anon_1.done = anon_1.steps) THEN 1 ELSE 0 END) AS through 
FROM (SELECT phase_executions.id AS phase_execution_id, batch_members.id AS pilot, max(CASE WHEN (batch_members.status = 'removed' AND (batch_members.undone_at IS NOT NULL OR batch_members.remove_reason = 'excluded by a person')) THEN 1 ELSE 0 END) AS taken_back, max(CASE WHEN (batch_members.status = 'active' AND batch_members.caught_up_at IS NULL) THEN 1 ELSE 0 END) AS catches_up, count(step_executions.id) AS steps, sum(CASE WHEN (step_executions.status IN ('dispatched', 'pending', 'polling')) THEN 1 ELSE 0 END) AS [open], sum(CASE WHEN (step_executions.status IN ('failed', 'poll_timeout')) THEN 1 ELSE 0 END) AS failed, sum(CASE WHEN (step_executions.status = 'succeeded') THEN 1 ELSE 0 END) AS done 
FROM phase_executions JOIN batch_members ON batch_members.batch_id = phase_executions.batch_id LEFT OUTER JOIN step_executions ON batch_members.id = step_executions.batch_member_id AND batch_members.epoch = step_executions.epoch AND step_executions.phase_execution_id = phase_executions.id 
WHERE phase_executions.id IN (SELECT anon_2.value 
FROM (SELECT [value] FROM OPENJSON(:p_phase_ids) WITH ([value] BIGINT '$[0]')) AS anon_2) AND batch_members.is_pilot = 1 GROUP BY phase_executions.id, batch_members.id) AS anon_1 GROUP BY anon_1.phase_execution_id
GO

-- store.counting.changes_of
SELECT batch_changes.batch_id, batch_changes.changes 
FROM batch_changes 
WHERE batch_changes.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.counting.count_again
SELECT phase_executions.id 
FROM phase_executions 
WHERE phase_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.counting.count_again
SELECT step_executions.phase_execution_id, step_executions.step_index, step_executions.status, count(*) AS count_1 
FROM step_executions 
WHERE step_executions.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_phases) WITH ([value] BIGINT '$[0]')) AS anon_1) GROUP BY step_executions.phase_execution_id, step_executions.step_index, step_executions.status
GO

-- store.counting.count_again
SELECT step_counts.phase_execution_id, step_counts.step_index, step_counts.status, step_counts.steps 
FROM step_counts 
WHERE step_counts.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_owners) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.counting.count_again
SELECT batch_members.id, batch_members.batch_id, batch_members.counted_as, CASE WHEN (batch_members.caught_up_at IS NOT NULL) THEN 1 ELSE 0 END + CASE WHEN ((SELECT TOP 1 1 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND rollback_executions.status IN ('dispatched', 'pending', 'polling')) IS NOT NULL OR batch_members.status = 'removed' AND batch_members.removed_at IS NOT NULL AND batch_members.seen_off_at IS NULL AND (batch_members.remove_reason NOT IN ('excluded by a person', 'moved', 'the source no longer returned it, and its batch had not begun'))) THEN 2 ELSE 0 END + CASE WHEN (batch_members.undone_at IS NOT NULL) THEN 4 ELSE 0 END + CASE WHEN (batch_members.status = 'failed') THEN 8 ELSE 0 END + CASE WHEN (batch_members.status = 'removed') THEN 16 ELSE 0 END AS number 
FROM batch_members 
WHERE NOT EXISTS (SELECT batch_members.counted_as INTERSECT SELECT CASE WHEN (batch_members.caught_up_at IS NOT NULL) THEN 1 ELSE 0 END + CASE WHEN ((SELECT TOP 1 1 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND rollback_executions.status IN ('dispatched', 'pending', 'polling')) IS NOT NULL OR batch_members.status = 'removed' AND batch_members.removed_at IS NOT NULL AND batch_members.seen_off_at IS NULL AND (batch_members.remove_reason NOT IN ('excluded by a person', 'moved', 'the source no longer returned it, and its batch had not begun'))) THEN 2 ELSE 0 END + CASE WHEN (batch_members.undone_at IS NOT NULL) THEN 4 ELSE 0 END + CASE WHEN (batch_members.status = 'failed') THEN 8 ELSE 0 END + CASE WHEN (batch_members.status = 'removed') THEN 16 ELSE 0 END) AND batch_members.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.counting.count_again
UPDATE batch_members SET counted_as=:p_values_counted_as OUTPUT inserted.id WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.counting.count_again
SELECT batch_members.batch_id, batch_members.counted_as, count(*) AS count_1 
FROM batch_members 
WHERE batch_members.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batch_members.counted_as IS NOT NULL GROUP BY batch_members.batch_id, batch_members.counted_as
GO

-- store.counting.count_again
SELECT member_counts.batch_id, member_counts.counted_as, member_counts.members 
FROM member_counts 
WHERE member_counts.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_owners) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.counting.count_again
UPDATE batch_changes SET changes=(batch_changes.changes + anon_1.more) OUTPUT inserted.batch_id FROM batch_changes, (SELECT [batch_id], [more] FROM OPENJSON(:p_rows) WITH ([batch_id] BIGINT '$[0]', [more] BIGINT '$[1]')) AS anon_1 WHERE batch_changes.batch_id = anon_1.batch_id
GO

-- store.counting.count_again
INSERT INTO batch_changes (batch_id, changes) SELECT anon_1.batch_id AS batch_id, 0 AS changes 
FROM (SELECT [batch_id], [more] FROM OPENJSON(:p_rows) WITH ([batch_id] BIGINT '$[0]', [more] BIGINT '$[1]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM batch_changes AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.batch_id = anon_1.batch_id))
GO

-- store.counting.count_again
UPDATE batch_changes SET changes=(batch_changes.changes + anon_1.more) OUTPUT inserted.batch_id FROM batch_changes, (SELECT [batch_id], [more] FROM OPENJSON(:p_rows) WITH ([batch_id] BIGINT '$[0]', [more] BIGINT '$[1]')) AS anon_1 WHERE batch_changes.batch_id = anon_1.batch_id
GO

-- store.counting.differing_counts
SELECT batch_members.id, batch_members.batch_id, batch_members.counted_as, CASE WHEN (batch_members.caught_up_at IS NOT NULL) THEN 1 ELSE 0 END + CASE WHEN ((SELECT TOP 1 1 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND rollback_executions.status IN ('dispatched', 'pending', 'polling')) IS NOT NULL OR batch_members.status = 'removed' AND batch_members.removed_at IS NOT NULL AND batch_members.seen_off_at IS NULL AND (batch_members.remove_reason NOT IN ('excluded by a person', 'moved', 'the source no longer returned it, and its batch had not begun'))) THEN 2 ELSE 0 END + CASE WHEN (batch_members.undone_at IS NOT NULL) THEN 4 ELSE 0 END + CASE WHEN (batch_members.status = 'failed') THEN 8 ELSE 0 END + CASE WHEN (batch_members.status = 'removed') THEN 16 ELSE 0 END AS number 
FROM batch_members 
WHERE NOT EXISTS (SELECT batch_members.counted_as INTERSECT SELECT CASE WHEN (batch_members.caught_up_at IS NOT NULL) THEN 1 ELSE 0 END + CASE WHEN ((SELECT TOP 1 1 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND rollback_executions.status IN ('dispatched', 'pending', 'polling')) IS NOT NULL OR batch_members.status = 'removed' AND batch_members.removed_at IS NOT NULL AND batch_members.seen_off_at IS NULL AND (batch_members.remove_reason NOT IN ('excluded by a person', 'moved', 'the source no longer returned it, and its batch had not begun'))) THEN 2 ELSE 0 END + CASE WHEN (batch_members.undone_at IS NOT NULL) THEN 4 ELSE 0 END + CASE WHEN (batch_members.status = 'failed') THEN 8 ELSE 0 END + CASE WHEN (batch_members.status = 'removed') THEN 16 ELSE 0 END) AND batch_members.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.counting.differing_counts
SELECT batch_members.batch_id, batch_members.counted_as, count(*) AS count_1 
FROM batch_members 
WHERE batch_members.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batch_members.counted_as IS NOT NULL GROUP BY batch_members.batch_id, batch_members.counted_as
GO

-- store.counting.differing_counts
SELECT member_counts.batch_id, member_counts.counted_as, member_counts.members 
FROM member_counts 
WHERE member_counts.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_owners) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.counting.differing_counts
SELECT phase_executions.id 
FROM phase_executions 
WHERE phase_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.counting.differing_counts
SELECT step_executions.phase_execution_id, step_executions.step_index, step_executions.status, count(*) AS count_1 
FROM step_executions 
WHERE step_executions.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_phases) WITH ([value] BIGINT '$[0]')) AS anon_1) GROUP BY step_executions.phase_execution_id, step_executions.step_index, step_executions.status
GO

-- store.counting.differing_counts
SELECT step_counts.phase_execution_id, step_counts.step_index, step_counts.status, step_counts.steps 
FROM step_counts 
WHERE step_counts.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_owners) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.counting.write_counts
UPDATE step_counts SET steps=(step_counts.steps + anon_1.more) OUTPUT inserted.phase_execution_id, inserted.step_index, inserted.status FROM step_counts, (SELECT [phase_execution_id], [step_index], CAST([status] AS NVARCHAR(21)) AS [status], [more] FROM OPENJSON(:p_rows) WITH ([phase_execution_id] BIGINT '$[0]', [step_index] BIGINT '$[1]', [status] NVARCHAR(MAX) '$[2]', [more] BIGINT '$[3]')) AS anon_1 WHERE step_counts.phase_execution_id = anon_1.phase_execution_id AND step_counts.step_index = anon_1.step_index AND step_counts.status = anon_1.status
GO

-- store.counting.write_counts
INSERT INTO step_counts (phase_execution_id, step_index, status, steps) SELECT anon_1.phase_execution_id AS phase_execution_id, anon_1.step_index AS step_index, anon_1.status AS status, 0 AS steps 
FROM (SELECT [phase_execution_id], [step_index], CAST([status] AS NVARCHAR(21)) AS [status], [more] FROM OPENJSON(:p_rows) WITH ([phase_execution_id] BIGINT '$[0]', [step_index] BIGINT '$[1]', [status] NVARCHAR(MAX) '$[2]', [more] BIGINT '$[3]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM step_counts AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.phase_execution_id = anon_1.phase_execution_id AND there.step_index = anon_1.step_index AND there.status = anon_1.status))
GO

-- store.counting.write_counts
UPDATE step_counts SET steps=(step_counts.steps + anon_1.more) OUTPUT inserted.phase_execution_id, inserted.step_index, inserted.status FROM step_counts, (SELECT [phase_execution_id], [step_index], CAST([status] AS NVARCHAR(21)) AS [status], [more] FROM OPENJSON(:p_rows) WITH ([phase_execution_id] BIGINT '$[0]', [step_index] BIGINT '$[1]', [status] NVARCHAR(MAX) '$[2]', [more] BIGINT '$[3]')) AS anon_1 WHERE step_counts.phase_execution_id = anon_1.phase_execution_id AND step_counts.step_index = anon_1.step_index AND step_counts.status = anon_1.status
GO

-- store.counting.write_counts
SELECT batch_members.id, batch_members.batch_id, batch_members.counted_as, CASE WHEN (batch_members.caught_up_at IS NOT NULL) THEN 1 ELSE 0 END + CASE WHEN ((SELECT TOP 1 1 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND rollback_executions.status IN ('dispatched', 'pending', 'polling')) IS NOT NULL OR batch_members.status = 'removed' AND batch_members.removed_at IS NOT NULL AND batch_members.seen_off_at IS NULL AND (batch_members.remove_reason NOT IN ('excluded by a person', 'moved', 'the source no longer returned it, and its batch had not begun'))) THEN 2 ELSE 0 END + CASE WHEN (batch_members.undone_at IS NOT NULL) THEN 4 ELSE 0 END + CASE WHEN (batch_members.status = 'failed') THEN 8 ELSE 0 END + CASE WHEN (batch_members.status = 'removed') THEN 16 ELSE 0 END AS number 
FROM batch_members 
WHERE NOT EXISTS (SELECT batch_members.counted_as INTERSECT SELECT CASE WHEN (batch_members.caught_up_at IS NOT NULL) THEN 1 ELSE 0 END + CASE WHEN ((SELECT TOP 1 1 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND rollback_executions.status IN ('dispatched', 'pending', 'polling')) IS NOT NULL OR batch_members.status = 'removed' AND batch_members.removed_at IS NOT NULL AND batch_members.seen_off_at IS NULL AND (batch_members.remove_reason NOT IN ('excluded by a person', 'moved', 'the source no longer returned it, and its batch had not begun'))) THEN 2 ELSE 0 END + CASE WHEN (batch_members.undone_at IS NOT NULL) THEN 4 ELSE 0 END + CASE WHEN (batch_members.status = 'failed') THEN 8 ELSE 0 END + CASE WHEN (batch_members.status = 'removed') THEN 16 ELSE 0 END) AND batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.counting.write_counts
UPDATE batch_members SET counted_as=:p_values_counted_as OUTPUT inserted.id WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.counting.write_counts
UPDATE member_counts SET members=(member_counts.members + anon_1.more) OUTPUT inserted.batch_id, inserted.counted_as FROM member_counts, (SELECT [batch_id], [counted_as], [more] FROM OPENJSON(:p_rows) WITH ([batch_id] BIGINT '$[0]', [counted_as] BIGINT '$[1]', [more] BIGINT '$[2]')) AS anon_1 WHERE member_counts.batch_id = anon_1.batch_id AND member_counts.counted_as = anon_1.counted_as
GO

-- store.counting.write_counts
INSERT INTO member_counts (batch_id, counted_as, members) SELECT anon_1.batch_id AS batch_id, anon_1.counted_as AS counted_as, 0 AS members 
FROM (SELECT [batch_id], [counted_as], [more] FROM OPENJSON(:p_rows) WITH ([batch_id] BIGINT '$[0]', [counted_as] BIGINT '$[1]', [more] BIGINT '$[2]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM member_counts AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.batch_id = anon_1.batch_id AND there.counted_as = anon_1.counted_as))
GO

-- store.counting.write_counts
UPDATE member_counts SET members=(member_counts.members + anon_1.more) OUTPUT inserted.batch_id, inserted.counted_as FROM member_counts, (SELECT [batch_id], [counted_as], [more] FROM OPENJSON(:p_rows) WITH ([batch_id] BIGINT '$[0]', [counted_as] BIGINT '$[1]', [more] BIGINT '$[2]')) AS anon_1 WHERE member_counts.batch_id = anon_1.batch_id AND member_counts.counted_as = anon_1.counted_as
GO

-- store.counting.write_counts
UPDATE batch_changes SET changes=(batch_changes.changes + anon_1.more) OUTPUT inserted.batch_id FROM batch_changes, (SELECT [batch_id], [more] FROM OPENJSON(:p_rows) WITH ([batch_id] BIGINT '$[0]', [more] BIGINT '$[1]')) AS anon_1 WHERE batch_changes.batch_id = anon_1.batch_id
GO

-- store.counting.write_counts
INSERT INTO batch_changes (batch_id, changes) SELECT anon_1.batch_id AS batch_id, 0 AS changes 
FROM (SELECT [batch_id], [more] FROM OPENJSON(:p_rows) WITH ([batch_id] BIGINT '$[0]', [more] BIGINT '$[1]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM batch_changes AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.batch_id = anon_1.batch_id))
GO

-- store.counting.write_counts
UPDATE batch_changes SET changes=(batch_changes.changes + anon_1.more) OUTPUT inserted.batch_id FROM batch_changes, (SELECT [batch_id], [more] FROM OPENJSON(:p_rows) WITH ([batch_id] BIGINT '$[0]', [more] BIGINT '$[1]')) AS anon_1 WHERE batch_changes.batch_id = anon_1.batch_id
GO

-- store.counts.active_counts
SELECT member_counts.batch_id, member_counts.counted_as, member_counts.members 
FROM member_counts 
WHERE member_counts.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:rows_1) WITH ([value] BIGINT '$[0]')) AS anon_1) AND member_counts.members > 0
GO

-- store.counts.batch_counts
SELECT batches.runbook_name, batches.status, count(*) AS count 
FROM batches GROUP BY batches.runbook_name, batches.status ORDER BY batches.runbook_name, batches.status
GO

-- store.counts.member_counts
SELECT member_counts.batch_id, member_counts.counted_as, member_counts.members 
FROM member_counts 
WHERE member_counts.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:rows_1) WITH ([value] BIGINT '$[0]')) AS anon_1) AND member_counts.members > 0
GO

-- store.counts.phase_outcomes
SELECT anon_1.phase_execution_id, count(*) AS members, sum(anon_1.through) AS members_through 
FROM (SELECT step_executions.phase_execution_id AS phase_execution_id, min(CASE WHEN (step_executions.status = 'succeeded') THEN :param_1 ELSE :param_2 END) AS through 
FROM step_executions JOIN batch_members ON batch_members.id = step_executions.batch_member_id 
WHERE step_executions.phase_execution_id IN (SELECT anon_2.value 
FROM (SELECT [value] FROM OPENJSON(:p_phase_ids) WITH ([value] BIGINT '$[0]')) AS anon_2) AND step_executions.epoch = batch_members.epoch GROUP BY step_executions.phase_execution_id, step_executions.batch_member_id) AS anon_1 GROUP BY anon_1.phase_execution_id ORDER BY anon_1.phase_execution_id
GO

-- store.counts.standings
SELECT member_counts.batch_id, member_counts.counted_as, member_counts.members 
FROM member_counts 
WHERE member_counts.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:rows_1) WITH ([value] BIGINT '$[0]')) AS anon_1) AND member_counts.members > 0
GO

-- store.counts.step_counts
SELECT step_counts.phase_execution_id, step_counts.step_index, step_counts.status, step_counts.steps AS count 
FROM step_counts 
WHERE step_counts.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_phase_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_counts.steps > 0
GO

-- store.counts.step_counts_by_place
SELECT step_counts.phase_execution_id, step_counts.step_index, step_counts.status, step_counts.steps AS count 
FROM step_counts 
WHERE step_counts.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_phase_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_counts.steps > 0
GO

-- store.datatables.current_keys
SELECT TOP 7 matoolkit_data.runbook_wave_v1._row_id, matoolkit_data.runbook_wave_v1._member_key_fold 
FROM matoolkit_data.runbook_wave_v1 
WHERE matoolkit_data.runbook_wave_v1._is_current = 1 AND matoolkit_data.runbook_wave_v1._row_id > :p_after ORDER BY matoolkit_data.runbook_wave_v1._row_id
GO

-- store.datatables.current_row
SELECT matoolkit_data.runbook_wave_v1_there._member_key, matoolkit_data.runbook_wave_v1_there._batch_time 
FROM matoolkit_data.runbook_wave_v1_there 
WHERE matoolkit_data.runbook_wave_v1_there._member_key_fold = :member_key_fold_1 AND matoolkit_data.runbook_wave_v1_there._is_current = 1
GO

-- store.datatables.current_rows_of
SELECT data_table_columns.source_name, data_table_columns.column_name 
FROM data_table_columns 
WHERE data_table_columns.table_name = :p_name ORDER BY data_table_columns.id
GO

-- store.datatables.current_rows_of
SELECT matoolkit_data.runbook_wave_v1_there._member_key_fold, matoolkit_data.runbook_wave_v1_there._batch_time, matoolkit_data.runbook_wave_v1_there._row_hash, matoolkit_data.runbook_wave_v1_there._cell_kinds, matoolkit_data.runbook_wave_v1_there.ffff 
FROM matoolkit_data.runbook_wave_v1_there 
WHERE matoolkit_data.runbook_wave_v1_there._member_key_fold IN (SELECT anon_1.[key] 
FROM (SELECT CAST([key] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [key] FROM OPENJSON(:rows_1) WITH ([key] NVARCHAR(MAX) '$[0]')) AS anon_1) AND matoolkit_data.runbook_wave_v1_there._is_current = 1 AND matoolkit_data.runbook_wave_v1_there._cell_kinds IS NOT NULL
GO

-- store.datatables.data_rows
SELECT TOP 7 matoolkit_data.runbook_wave_v1._row_id, matoolkit_data.runbook_wave_v1._member_key, matoolkit_data.runbook_wave_v1._batch_time, matoolkit_data.runbook_wave_v1.ffff, matoolkit_data.runbook_wave_v1.[Email], matoolkit_data.runbook_wave_v1.[Aliases] 
FROM matoolkit_data.runbook_wave_v1 
WHERE matoolkit_data.runbook_wave_v1._row_id > :row_id_1 AND matoolkit_data.runbook_wave_v1._is_current = 1 ORDER BY matoolkit_data.runbook_wave_v1._row_id
GO

-- store.datatables.known_fingerprints
SELECT matoolkit_data.runbook_wave_v1._row_hash 
FROM matoolkit_data.runbook_wave_v1 
WHERE matoolkit_data.runbook_wave_v1._is_current = 1
GO

-- store.datatables.mark_gone
UPDATE matoolkit_data.runbook_wave_v1 SET _last_seen_at=:p_at, _is_current=:_is_current WHERE matoolkit_data.runbook_wave_v1._row_id IN (SELECT anon_1.id 
FROM (SELECT [id] FROM OPENJSON(:p_row_ids) WITH ([id] BIGINT '$[0]')) AS anon_1) AND matoolkit_data.runbook_wave_v1._is_current = 1
GO

-- store.datatables.open_data_table
SELECT data_table_columns.source_name, data_table_columns.column_name 
FROM data_table_columns 
WHERE data_table_columns.table_name = :p_name ORDER BY data_table_columns.id
GO

-- store.datatables.open_data_table
ALTER TABLE matoolkit_data.runbook_wave_v1_there ADD _cell_kinds NVARCHAR(300) NULL
GO

-- store.datatables.open_data_table
ALTER TABLE matoolkit_data.runbook_wave_v1_there ADD [Email] NVARCHAR(max) NULL
GO

-- store.datatables.open_data_table
INSERT INTO data_table_columns (source_name, column_name, table_name) SELECT TOP 2147483647 anon_1.source_name AS source_name, anon_1.column_name AS column_name, :p_shared_table_name AS table_name 
FROM (SELECT [source_name], CAST([column_name] AS NVARCHAR(64)) AS [column_name], [place] FROM OPENJSON(:p_rows) WITH ([source_name] NVARCHAR(MAX) '$[0]', [column_name] NVARCHAR(MAX) '$[1]', [place] BIGINT '$[2]')) AS anon_1 ORDER BY anon_1.place
GO

-- store.datatables.open_data_table
SELECT data_table_columns.source_name, data_table_columns.column_name 
FROM data_table_columns 
WHERE data_table_columns.table_name = :p_name ORDER BY data_table_columns.id
GO

-- store.datatables.open_data_table
CREATE TABLE matoolkit_data.runbook_wave_v1 (
	_row_id BIGINT NOT NULL IDENTITY, 
	_member_key NVARCHAR(400) NOT NULL, 
	_member_key_fold NVARCHAR(400) COLLATE Latin1_General_100_BIN2 NOT NULL, 
	_batch_time DATETIME2(6) NULL, 
	_first_seen_at DATETIME2(6) NOT NULL, 
	_last_seen_at DATETIME2(6) NOT NULL, 
	_is_current BIT NOT NULL, 
	_row_hash NVARCHAR(32) NOT NULL, 
	_cell_kinds NVARCHAR(300) NULL, 
	ffff NVARCHAR(max) NULL, 
	[x_DROP_TABLE_batches] NVARCHAR(max) NULL, 
	[DROP_TABLE_batches] NVARCHAR(max) NULL, 
	PRIMARY KEY (_row_id), 
	UNIQUE (_member_key_fold)
)
GO

-- store.datatables.open_data_table
INSERT INTO data_table_columns (source_name, column_name, table_name) SELECT TOP 2147483647 anon_1.source_name AS source_name, anon_1.column_name AS column_name, :p_shared_table_name AS table_name 
FROM (SELECT [source_name], CAST([column_name] AS NVARCHAR(64)) AS [column_name], [place] FROM OPENJSON(:p_rows) WITH ([source_name] NVARCHAR(MAX) '$[0]', [column_name] NVARCHAR(MAX) '$[1]', [place] BIGINT '$[2]')) AS anon_1 ORDER BY anon_1.place
GO

-- store.datatables.upsert_rows
INSERT INTO matoolkit_data.runbook_wave_v1 (_member_key, _member_key_fold, _batch_time, _row_hash, _cell_kinds, ffff, [Email], [Aliases], _first_seen_at, _last_seen_at, _is_current) SELECT anon_1._member_key AS _member_key, anon_1._member_key_fold AS _member_key_fold, anon_1._batch_time AS _batch_time, anon_1._row_hash AS _row_hash, anon_1._cell_kinds AS _cell_kinds, anon_1.ffff AS ffff, anon_1.[Email] AS [Email], anon_1.[Aliases] AS [Aliases], :p_at AS _first_seen_at, :p_at AS _last_seen_at, :param_1 AS _is_current 
FROM (SELECT CAST([_member_key] AS NVARCHAR(401)) AS [_member_key], CAST([_member_key_fold] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [_member_key_fold], [_batch_time], CAST([_row_hash] AS NVARCHAR(33)) AS [_row_hash], CAST([_cell_kinds] AS NVARCHAR(301)) AS [_cell_kinds], [ffff], [Email], [Aliases] FROM OPENJSON(:p_rows) WITH ([_member_key] NVARCHAR(MAX) '$[0]', [_member_key_fold] NVARCHAR(MAX) '$[1]', [_batch_time] DATETIME2(6) '$[2]', [_row_hash] NVARCHAR(MAX) '$[3]', [_cell_kinds] NVARCHAR(MAX) '$[4]', [ffff] NVARCHAR(MAX) '$[5]', [Email] NVARCHAR(MAX) '$[6]', [Aliases] NVARCHAR(MAX) '$[7]')) AS anon_1
GO

-- store.deadletters.dead_letter_counts
SELECT dead_letters.status, count(*) AS count_1 
FROM dead_letters GROUP BY dead_letters.status ORDER BY dead_letters.status
GO

-- store.deadletters.dead_letters_by_id
SELECT dead_letters.id, dead_letters.topic, dead_letters.subscription, dead_letters.message_id, dead_letters.message_type, dead_letters.body, dead_letters.properties_json, dead_letters.reason, dead_letters.description, dead_letters.delivery_count, dead_letters.enqueued_at, dead_letters.dead_lettered_at, dead_letters.status, dead_letters.resolved_at, dead_letters.resolved_by, dead_letters.resent_message_id 
FROM dead_letters 
WHERE dead_letters.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.deadletters.dead_letters_page
SELECT TOP 7 dead_letters.id, dead_letters.topic, dead_letters.subscription, dead_letters.message_id, dead_letters.message_type, dead_letters.body, dead_letters.properties_json, dead_letters.reason, dead_letters.description, dead_letters.delivery_count, dead_letters.enqueued_at, dead_letters.dead_lettered_at, dead_letters.status, dead_letters.resolved_at, dead_letters.resolved_by, dead_letters.resent_message_id 
FROM dead_letters 
WHERE dead_letters.status = 'open' AND dead_letters.id < :id_1 ORDER BY dead_letters.id DESC
GO

-- store.deadletters.discard_dead_letters
UPDATE dead_letters SET status=:p_values_status, resolved_at=:p_values_resolved_at, resolved_by=:p_values_resolved_by OUTPUT inserted.id WHERE dead_letters.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND dead_letters.status = 'open'
GO

-- store.deadletters.keep_dead_letters
INSERT INTO dead_letters (topic, subscription, message_id, message_type, body, properties_json, reason, description, delivery_count, enqueued_at, dead_lettered_at, status) OUTPUT inserted.id, inserted.topic, inserted.subscription, inserted.message_id, inserted.message_type, inserted.body, inserted.properties_json, inserted.reason, inserted.description, inserted.delivery_count, inserted.enqueued_at, inserted.dead_lettered_at, inserted.status, inserted.resolved_at, inserted.resolved_by, inserted.resent_message_id SELECT TOP 2147483647 anon_1.topic AS topic, anon_1.subscription AS subscription, anon_1.message_id AS message_id, anon_1.message_type AS message_type, anon_1.body AS body, anon_1.properties_json AS properties_json, anon_1.reason AS reason, anon_1.description AS description, anon_1.delivery_count AS delivery_count, anon_1.enqueued_at AS enqueued_at, :p_shared_dead_lettered_at AS dead_lettered_at, :p_shared_status AS status 
FROM (SELECT CAST([topic] AS NVARCHAR(101)) AS [topic], CAST([subscription] AS NVARCHAR(101)) AS [subscription], CAST([message_id] AS NVARCHAR(201)) AS [message_id], CAST([message_type] AS NVARCHAR(51)) AS [message_type], [body], [properties_json], [reason], [description], [delivery_count], [enqueued_at], [place] FROM OPENJSON(:p_rows) WITH ([topic] NVARCHAR(MAX) '$[0]', [subscription] NVARCHAR(MAX) '$[1]', [message_id] NVARCHAR(MAX) '$[2]', [message_type] NVARCHAR(MAX) '$[3]', [body] NVARCHAR(MAX) '$[4]', [properties_json] NVARCHAR(MAX) '$[5]', [reason] NVARCHAR(MAX) '$[6]', [description] NVARCHAR(MAX) '$[7]', [delivery_count] BIGINT '$[8]', [enqueued_at] DATETIME2(6) '$[9]', [place] BIGINT '$[10]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM dead_letters AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.topic = anon_1.topic AND there.subscription = anon_1.subscription AND there.message_id = anon_1.message_id AND there.enqueued_at = anon_1.enqueued_at)) ORDER BY anon_1.place
GO

-- store.deadletters.open_dead_letters
SELECT TOP 7 dead_letters.id, dead_letters.message_id, dead_letters.reason, dead_letters.description 
FROM dead_letters 
WHERE dead_letters.status = 'open' AND dead_letters.id > :p_after ORDER BY dead_letters.id
GO

-- store.deadletters.resend_dead_letters
UPDATE dead_letters SET status=:p_values_status, resolved_at=:p_values_resolved_at, resolved_by=:p_values_resolved_by, resent_message_id=anon_1.resent_message_id OUTPUT inserted.id FROM dead_letters, (SELECT [id], CAST([resent_message_id] AS NVARCHAR(201)) AS [resent_message_id] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [resent_message_id] NVARCHAR(MAX) '$[1]')) AS anon_1 WHERE dead_letters.id = anon_1.id AND dead_letters.status = 'open'
GO

-- store.enrolments.busy_members
SELECT batch_members.id 
FROM batch_members 
WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND ((EXISTS (SELECT * 
FROM step_executions 
WHERE step_executions.batch_member_id = batch_members.id AND step_executions.lost_at IS NOT NULL)) OR (EXISTS (SELECT * 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND (rollback_executions.status IN ('dispatched', 'pending', 'polling') OR rollback_executions.lost_at IS NOT NULL))) OR batch_members.status = 'removed' AND batch_members.remove_reason != :remove_reason_1 AND batch_members.seen_off_at IS NULL)
GO

-- store.enrolments.count_members
SELECT count(*) AS count_1 
FROM batch_members 
WHERE batch_members.batch_id = :batch_id_1 AND batch_members.status = 'active' AND batch_members.status = 'active' AND 'waiting' = CASE WHEN ((SELECT TOP 1 1 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND rollback_executions.status IN ('dispatched', 'pending', 'polling')) IS NOT NULL OR batch_members.status = 'removed' AND batch_members.removed_at IS NOT NULL AND batch_members.seen_off_at IS NULL AND (batch_members.remove_reason NOT IN ('excluded by a person', 'moved', 'the source no longer returned it, and its batch had not begun'))) THEN 'undoing' WHEN (batch_members.status = 'removed' AND batch_members.undone_at IS NOT NULL) THEN 'undone' WHEN (batch_members.status = 'removed') THEN 'left' WHEN (batch_members.status = 'failed') THEN 'failed' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'cancelled') IS NOT NULL) THEN 'stopped' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM step_executions 
WHERE step_executions.batch_member_id = batch_members.id AND step_executions.status IN ('dispatched', 'pending', 'polling') AND step_executions.epoch = batch_members.epoch) IS NOT NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'active') IS NOT NULL AND batch_members.caught_up_at IS NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'active') IS NOT NULL AND (SELECT TOP 1 1 
FROM phase_executions 
WHERE phase_executions.batch_id = batch_members.batch_id AND phase_executions.status = 'dispatched' AND phase_executions.expanded_at IS NULL) IS NOT NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM phase_executions 
WHERE phase_executions.batch_id = batch_members.batch_id AND phase_executions.status = 'pending') IS NOT NULL) THEN 'waiting' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status IN ('detected', 'init_dispatched')) IS NOT NULL) THEN 'waiting' WHEN (batch_members.status = 'active') THEN 'done' END AND batch_members.member_key_fold LIKE :member_key_fold_1 ESCAPE '/'
GO

-- store.enrolments.first_phases_of_active
SELECT DISTINCT batch_members.batch_id, batch_members.first_phase_version, batch_members.first_phase_place 
FROM batch_members 
WHERE batch_members.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batch_members.status = 'active'
GO

-- store.enrolments.known_members
SELECT batch_members.id, batch_members.batch_id, batch_members.member_key_fold, batch_members.status, batch_members.data_hash, batch_members.left_source_at, batch_members.removed_at, batch_members.remove_reason, batch_members.undone_at 
FROM batch_members 
WHERE batch_members.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.enrolments.latest_enrolments
SELECT batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.member_key_fold, batch_members.status, batch_members.data_hash, batch_members.failed_at, batch_members.remove_reason, batch_members.undone_at, batches.runbook_name, batches.status AS batch_status, batches.batch_start_time, batches.is_manual, batches.completed_at AS batch_completed_at 
FROM batch_members JOIN batches ON batches.id = batch_members.batch_id 
WHERE batch_members.id IN (SELECT max(batch_members.id) AS max_1 
FROM batch_members JOIN batches ON batches.id = batch_members.batch_id 
WHERE batches.runbook_name = :runbook_name_1 AND batch_members.member_key_fold IN (SELECT anon_1.value 
FROM (SELECT CAST([value] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [value] FROM OPENJSON(:rows_1) WITH ([value] NVARCHAR(MAX) '$[0]')) AS anon_1) GROUP BY batch_members.member_key_fold)
GO

-- store.enrolments.member_fingerprints
SELECT batch_members.data_hash 
FROM batch_members JOIN batches ON batches.id = batch_members.batch_id 
WHERE batches.runbook_name = :p_runbook_name AND batches.status IN ('active', 'detected', 'init_dispatched') AND batch_members.status = 'active'
GO

-- store.enrolments.members_page
SELECT TOP 7 batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.member_key_fold, batch_members.status, batch_members.epoch, batch_members.first_phase_version, batch_members.first_phase_place, batch_members.data_json, batch_members.data_hash, batch_members.worker_data_json, batch_members.added_at, batch_members.add_dispatched_at, batch_members.caught_up_at, batch_members.left_source_at, batch_members.removed_at, batch_members.removed_by, batch_members.remove_reason, batch_members.remove_dispatched_at, batch_members.seen_off_at, batch_members.failed_at, batch_members.undone_at, batch_members.is_pilot 
FROM batch_members 
WHERE batch_members.batch_id = :batch_id_1 AND batch_members.status = 'active' AND batch_members.status = 'active' AND 'waiting' = CASE WHEN ((SELECT TOP 1 1 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND rollback_executions.status IN ('dispatched', 'pending', 'polling')) IS NOT NULL OR batch_members.status = 'removed' AND batch_members.removed_at IS NOT NULL AND batch_members.seen_off_at IS NULL AND (batch_members.remove_reason NOT IN ('excluded by a person', 'moved', 'the source no longer returned it, and its batch had not begun'))) THEN 'undoing' WHEN (batch_members.status = 'removed' AND batch_members.undone_at IS NOT NULL) THEN 'undone' WHEN (batch_members.status = 'removed') THEN 'left' WHEN (batch_members.status = 'failed') THEN 'failed' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'cancelled') IS NOT NULL) THEN 'stopped' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM step_executions 
WHERE step_executions.batch_member_id = batch_members.id AND step_executions.status IN ('dispatched', 'pending', 'polling') AND step_executions.epoch = batch_members.epoch) IS NOT NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'active') IS NOT NULL AND batch_members.caught_up_at IS NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'active') IS NOT NULL AND (SELECT TOP 1 1 
FROM phase_executions 
WHERE phase_executions.batch_id = batch_members.batch_id AND phase_executions.status = 'dispatched' AND phase_executions.expanded_at IS NULL) IS NOT NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM phase_executions 
WHERE phase_executions.batch_id = batch_members.batch_id AND phase_executions.status = 'pending') IS NOT NULL) THEN 'waiting' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status IN ('detected', 'init_dispatched')) IS NOT NULL) THEN 'waiting' WHEN (batch_members.status = 'active') THEN 'done' END AND batch_members.member_key_fold LIKE :member_key_fold_1 ESCAPE '/' AND batch_members.id > :id_1 ORDER BY batch_members.id
GO

-- store.enrolments.members_waiting_to_catch_up
SELECT batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.epoch 
FROM batch_members 
WHERE batch_members.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:rows_1) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batch_members.caught_up_at IS NULL AND batch_members.status = 'active'
GO

-- store.enrolments.places_before
SELECT batch_members.member_key_fold, batch_members.status, batch_members.source_time, batch_members.undone_at 
FROM batch_members JOIN batches ON batches.id = batch_members.batch_id 
WHERE batches.runbook_name = :p_runbook_name AND batch_members.member_key_fold IN (SELECT anon_1.value 
FROM (SELECT CAST([value] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [value] FROM OPENJSON(:p_keys) WITH ([value] NVARCHAR(MAX) '$[0]')) AS anon_1) AND (batch_members.status = 'failed' OR batch_members.undone_at IS NOT NULL OR batches.status = 'completed' AND batch_members.status = 'active')
GO

-- store.enrolments.places_of_keys
SELECT batch_members.id, batch_members.batch_id, batch_members.member_key_fold, batch_members.status, batch_members.worker_data_json, batch_members.added_at, batch_members.removed_at, batch_members.remove_reason, batch_members.failed_at, CASE WHEN (batches.status IN ('active', 'detected', 'init_dispatched') AND batch_members.status = 'active') THEN 1 ELSE 0 END AS is_under_way, CASE WHEN ((EXISTS (SELECT * 
FROM step_executions 
WHERE step_executions.batch_member_id = batch_members.id AND step_executions.lost_at IS NOT NULL)) OR (EXISTS (SELECT * 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND (rollback_executions.status IN ('dispatched', 'pending', 'polling') OR rollback_executions.lost_at IS NOT NULL))) OR batch_members.status = 'removed' AND batch_members.remove_reason != :remove_reason_1 AND batch_members.seen_off_at IS NULL) THEN 1 ELSE 0 END AS is_busy 
FROM batch_members JOIN batches ON batches.id = batch_members.batch_id 
WHERE batches.runbook_name = :p_runbook_name AND batch_members.member_key_fold IN (SELECT anon_1.value 
FROM (SELECT CAST([value] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [value] FROM OPENJSON(:p_keys) WITH ([value] NVARCHAR(MAX) '$[0]')) AS anon_1)
GO

-- store.enrolments.taken_keys
SELECT batch_members.member_key_fold 
FROM batch_members JOIN batches ON batches.id = batch_members.batch_id 
WHERE batches.runbook_name = :p_runbook_name AND batches.id != :p_besides AND batch_members.member_key_fold IN (SELECT anon_1.value 
FROM (SELECT CAST([value] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [value] FROM OPENJSON(:p_folds) WITH ([value] NVARCHAR(MAX) '$[0]')) AS anon_1) AND (batches.status IN ('active', 'detected', 'init_dispatched') AND batch_members.status = 'active' OR (EXISTS (SELECT * 
FROM step_executions 
WHERE step_executions.batch_member_id = batch_members.id AND step_executions.lost_at IS NOT NULL)) OR (EXISTS (SELECT * 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND (rollback_executions.status IN ('dispatched', 'pending', 'polling') OR rollback_executions.lost_at IS NOT NULL))) OR batch_members.status = 'removed' AND batch_members.remove_reason != :remove_reason_1 AND batch_members.seen_off_at IS NULL)
GO

-- store.exclusions.count_exclusions
SELECT count(*) AS count_1 
FROM member_exclusions 
WHERE member_exclusions.runbook_key = :runbook_key_1 AND member_exclusions.included_at IS NULL
GO

-- store.exclusions.end_exclusion
UPDATE member_exclusions SET included_at=:p_at OUTPUT inserted.member_key_fold WHERE member_exclusions.runbook_key = :p_runbook_key AND member_exclusions.member_key_fold = :p_member_key_fold AND member_exclusions.included_at IS NULL
GO

-- store.exclusions.exclude
INSERT INTO member_exclusions (runbook_key, member_key_fold, runbook_name, member_key, excluded_at, excluded_by, reason, included_at) SELECT TOP 2147483647 anon_1.runbook_key AS runbook_key, anon_1.member_key_fold AS member_key_fold, :p_shared_runbook_name AS runbook_name, :p_shared_member_key AS member_key, :p_shared_excluded_at AS excluded_at, :p_shared_excluded_by AS excluded_by, :p_shared_reason AS reason, :p_shared_included_at AS included_at 
FROM (SELECT CAST([runbook_key] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [runbook_key], CAST([member_key_fold] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [member_key_fold], [place] FROM OPENJSON(:p_rows) WITH ([runbook_key] NVARCHAR(MAX) '$[0]', [member_key_fold] NVARCHAR(MAX) '$[1]', [place] BIGINT '$[2]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM member_exclusions AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.runbook_key = anon_1.runbook_key AND there.member_key_fold = anon_1.member_key_fold)) ORDER BY anon_1.place
GO

-- store.exclusions.exclude
UPDATE member_exclusions SET runbook_name=:p_values_runbook_name, member_key=:p_values_member_key, excluded_at=:p_values_excluded_at, excluded_by=:p_values_excluded_by, reason=:p_values_reason, included_at=:p_values_included_at WHERE member_exclusions.runbook_key = :p_runbook_key AND member_exclusions.member_key_fold = :p_member_key_fold
GO

-- store.exclusions.excluded_keys
SELECT member_exclusions.member_key_fold 
FROM member_exclusions 
WHERE member_exclusions.runbook_key = :p_runbook_key AND member_exclusions.included_at IS NULL
GO

-- store.exclusions.exclusion_of
SELECT member_exclusions.runbook_name, member_exclusions.member_key, member_exclusions.excluded_at, member_exclusions.excluded_by, member_exclusions.reason 
FROM member_exclusions 
WHERE member_exclusions.runbook_key = :runbook_key_1 AND member_exclusions.included_at IS NULL AND member_exclusions.member_key_fold = :member_key_fold_1
GO

-- store.exclusions.exclusions_page
SELECT TOP 7 member_exclusions.runbook_name, member_exclusions.member_key, member_exclusions.excluded_at, member_exclusions.excluded_by, member_exclusions.reason, member_exclusions.id 
FROM member_exclusions 
WHERE member_exclusions.runbook_key = :runbook_key_1 AND member_exclusions.included_at IS NULL AND member_exclusions.id > :id_1 ORDER BY member_exclusions.id
GO

-- store.executions.inits_by_id
SELECT init_executions.id, init_executions.batch_id, init_executions.step_name, init_executions.step_index, init_executions.worker_id, init_executions.function_name, init_executions.params_json, init_executions.status, init_executions.attempt, init_executions.job_id, init_executions.result_json, init_executions.error_type, init_executions.error_message, init_executions.missing_outputs_json, init_executions.dispatched_at, init_executions.completed_at, init_executions.timeout_sec, init_executions.answered_at, init_executions.lost_at, init_executions.is_poll_step, init_executions.poll_interval_sec, init_executions.poll_timeout_sec, init_executions.poll_started_at, init_executions.last_polled_at, init_executions.poll_due_at, init_executions.poll_count, init_executions.on_failure, init_executions.retry_count, init_executions.max_retries, init_executions.retry_interval_sec, init_executions.retry_after, init_executions.throttled_since, init_executions.created_at, init_executions.runbook_version 
FROM init_executions 
WHERE init_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.executions.lost_jobs
SELECT TOP 7 step_executions.id, step_executions.batch_id, step_executions.attempt, step_executions.status, step_executions.lost_at AS due_at 
FROM step_executions 
WHERE step_executions.lost_at IS NOT NULL AND step_executions.lost_at <= :p_at AND (step_executions.lost_at > :p_after_due_at OR step_executions.lost_at = :p_after_due_at AND step_executions.id > :p_after_id) ORDER BY step_executions.lost_at, step_executions.id
GO

-- store.executions.polls_due
SELECT TOP 7 step_executions.id, step_executions.batch_id, step_executions.attempt, step_executions.status, step_executions.poll_due_at AS due_at 
FROM step_executions 
WHERE step_executions.status = 'polling' AND step_executions.poll_due_at <= :p_at AND NOT (EXISTS (SELECT gate.id 
FROM gates AS gate 
WHERE gate.opened_at IS NULL AND (gate.shut_from <= :p_at OR gate.kind != 'freeze' OR gate.swept_at IS NOT NULL) AND (gate.shut_until IS NULL OR gate.shut_until > :p_at) AND gate.reach = 'send' AND (gate.phase_execution_id IS NULL OR (EXISTS (SELECT named.id 
FROM phase_executions AS named JOIN phase_executions AS mine ON named.batch_id = mine.batch_id AND named.runbook_version = mine.runbook_version AND (named.offset_minutes > mine.offset_minutes OR named.offset_minutes = mine.offset_minutes AND named.phase_index <= mine.phase_index) 
WHERE named.id = gate.phase_execution_id AND mine.id = step_executions.phase_execution_id))) AND (gate.worker_id IS NULL OR gate.worker_id = step_executions.worker_id) AND (gate.batch_id IS NULL OR gate.batch_id = step_executions.batch_id) AND (gate.runbook_name IS NULL OR gate.runbook_name = (SELECT batches.runbook_name 
FROM batches 
WHERE batches.id = step_executions.batch_id)) AND (gate.member_key_fold IS NULL OR gate.member_key_fold = (SELECT batch_members.member_key_fold 
FROM batch_members 
WHERE batch_members.id = step_executions.batch_member_id)))) AND (step_executions.phase_execution_id NOT IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_without_phase_execution_id) WITH ([value] BIGINT '$[0]')) AS anon_1)) AND (step_executions.poll_due_at > :p_after_due_at OR step_executions.poll_due_at = :p_after_due_at AND step_executions.id > :p_after_id) ORDER BY step_executions.poll_due_at, step_executions.id
GO

-- store.executions.retries_due
SELECT TOP 7 step_executions.id, step_executions.batch_id, step_executions.attempt, step_executions.status, step_executions.retry_after AS due_at 
FROM step_executions 
WHERE step_executions.status = 'pending' AND step_executions.retry_after <= :p_at AND NOT (EXISTS (SELECT gate.id 
FROM gates AS gate 
WHERE gate.opened_at IS NULL AND (gate.shut_from <= :p_at OR gate.kind != 'freeze' OR gate.swept_at IS NOT NULL) AND (gate.shut_until IS NULL OR gate.shut_until > :p_at) AND gate.reach = 'send' AND (gate.phase_execution_id IS NULL OR (EXISTS (SELECT named.id 
FROM phase_executions AS named JOIN phase_executions AS mine ON named.batch_id = mine.batch_id AND named.runbook_version = mine.runbook_version AND (named.offset_minutes > mine.offset_minutes OR named.offset_minutes = mine.offset_minutes AND named.phase_index <= mine.phase_index) 
WHERE named.id = gate.phase_execution_id AND mine.id = step_executions.phase_execution_id))) AND (gate.worker_id IS NULL OR gate.worker_id = step_executions.worker_id) AND (gate.batch_id IS NULL OR gate.batch_id = step_executions.batch_id) AND (gate.runbook_name IS NULL OR gate.runbook_name = (SELECT batches.runbook_name 
FROM batches 
WHERE batches.id = step_executions.batch_id)) AND (gate.member_key_fold IS NULL OR gate.member_key_fold = (SELECT batch_members.member_key_fold 
FROM batch_members 
WHERE batch_members.id = step_executions.batch_member_id)))) AND (step_executions.phase_execution_id NOT IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_without_phase_execution_id) WITH ([value] BIGINT '$[0]')) AS anon_1)) AND (step_executions.retry_after > :p_after_due_at OR step_executions.retry_after = :p_after_due_at AND step_executions.id > :p_after_id) ORDER BY step_executions.retry_after, step_executions.id
GO

-- store.executions.rollbacks_by_id
SELECT rollback_executions.id, rollback_executions.batch_id, rollback_executions.step_name, rollback_executions.step_index, rollback_executions.worker_id, rollback_executions.function_name, rollback_executions.params_json, rollback_executions.status, rollback_executions.attempt, rollback_executions.job_id, rollback_executions.result_json, rollback_executions.error_type, rollback_executions.error_message, rollback_executions.missing_outputs_json, rollback_executions.dispatched_at, rollback_executions.completed_at, rollback_executions.timeout_sec, rollback_executions.answered_at, rollback_executions.lost_at, rollback_executions.is_poll_step, rollback_executions.poll_interval_sec, rollback_executions.poll_timeout_sec, rollback_executions.poll_started_at, rollback_executions.last_polled_at, rollback_executions.poll_due_at, rollback_executions.poll_count, rollback_executions.on_failure, rollback_executions.retry_count, rollback_executions.max_retries, rollback_executions.retry_interval_sec, rollback_executions.retry_after, rollback_executions.throttled_since, rollback_executions.created_at, rollback_executions.batch_member_id, rollback_executions.epoch, rollback_executions.runbook_version, rollback_executions.cause, rollback_executions.step_execution_id, rollback_executions.init_execution_id, rollback_executions.sequence_name, rollback_executions.sequence_key 
FROM rollback_executions 
WHERE rollback_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.executions.steps_by_id
SELECT step_executions.id, step_executions.batch_id, step_executions.step_name, step_executions.step_index, step_executions.worker_id, step_executions.function_name, step_executions.params_json, step_executions.status, step_executions.attempt, step_executions.job_id, step_executions.result_json, step_executions.error_type, step_executions.error_message, step_executions.missing_outputs_json, step_executions.dispatched_at, step_executions.completed_at, step_executions.timeout_sec, step_executions.answered_at, step_executions.lost_at, step_executions.is_poll_step, step_executions.poll_interval_sec, step_executions.poll_timeout_sec, step_executions.poll_started_at, step_executions.last_polled_at, step_executions.poll_due_at, step_executions.poll_count, step_executions.on_failure, step_executions.retry_count, step_executions.max_retries, step_executions.retry_interval_sec, step_executions.retry_after, step_executions.throttled_since, step_executions.created_at, step_executions.phase_execution_id, step_executions.batch_member_id, step_executions.epoch, step_executions.holds_place 
FROM step_executions 
WHERE step_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.failures.failures_by_error
SELECT phase_executions.phase_name, step_executions.step_name, step_executions.error_type, min(substring(coalesce(step_executions.error_message, ''), 1, 200)) AS error, coalesce(step_executions.error_fingerprint, substring(coalesce(step_executions.error_message, ''), 1, 200)) AS fingerprint, count(*) AS steps, count(DISTINCT step_executions.batch_member_id) AS members, min(step_executions.id) AS example_step_id 
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id JOIN batch_members ON batch_members.id = step_executions.batch_member_id AND batch_members.epoch = step_executions.epoch 
WHERE step_executions.status IN ('failed', 'poll_timeout') AND phase_executions.batch_id = :batch_id_1 GROUP BY phase_executions.phase_name, step_executions.step_name, step_executions.error_type, coalesce(step_executions.error_fingerprint, substring(coalesce(step_executions.error_message, ''), 1, 200)) ORDER BY count(*) DESC, min(step_executions.id)
GO

-- store.failures.members_that_failed
SELECT step_executions.batch_member_id 
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id JOIN batch_members ON batch_members.id = step_executions.batch_member_id AND batch_members.epoch = step_executions.epoch 
WHERE step_executions.status IN ('failed', 'poll_timeout') AND phase_executions.batch_id = :batch_id_1 AND phase_executions.phase_name = :phase_name_1 AND step_executions.step_name = :step_name_1 AND substring(coalesce(step_executions.error_message, ''), 1, 200) = :substring_1 AND coalesce(step_executions.error_fingerprint, substring(coalesce(step_executions.error_message, ''), 1, 200)) = :coalesce_1
GO

-- store.failures.open_failures
SELECT TOP 7 batches.runbook_name, step_executions.step_name, step_executions.error_type, step_executions.error_fingerprint AS fingerprint, count(DISTINCT step_executions.batch_member_id) AS members 
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id JOIN batch_members ON batch_members.id = step_executions.batch_member_id AND batch_members.epoch = step_executions.epoch JOIN batches ON batches.id = phase_executions.batch_id 
WHERE step_executions.status IN ('failed', 'poll_timeout') AND batches.status IN ('active', 'detected', 'init_dispatched') GROUP BY batches.runbook_name, step_executions.step_name, step_executions.error_type, step_executions.error_fingerprint ORDER BY count(DISTINCT step_executions.batch_member_id) DESC, batches.runbook_name, step_executions.step_name, step_executions.error_type, fingerprint
GO

-- store.gatekeeping.batches_behind
SELECT batches.id, batches.runbook_id, batches.runbook_name, batches.batch_start_time, batches.status, batches.is_manual, batches.created_by, batches.current_phase, batches.detected_at, batches.init_dispatched_at, batches.init_count, batches.completed_at, batches.reopened_at, batches.hold_count, batches.removals_approved_at 
FROM batches 
WHERE (batches.status IN ('active', 'detected', 'init_dispatched') OR (EXISTS (SELECT * 
FROM rollback_executions 
WHERE rollback_executions.batch_id = batches.id AND rollback_executions.status IN ('dispatched', 'pending', 'polling')))) AND batches.runbook_name = :p_of_batch_runbook_name AND batches.id = :p_of_batch_id AND (EXISTS (SELECT * 
FROM batch_members 
WHERE batch_members.batch_id = batches.id AND batch_members.member_key_fold = :p_of_member_member_key_fold))
GO

-- store.gatekeeping.batches_without_work
SELECT batches.id 
FROM batches 
WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND (batches.status NOT IN ('active', 'detected', 'init_dispatched')) AND NOT (EXISTS (SELECT * 
FROM rollback_executions 
WHERE rollback_executions.batch_id = batches.id AND rollback_executions.status IN ('dispatched', 'pending', 'polling'))) ORDER BY batches.id
GO

-- store.gatekeeping.gates_by_id
SELECT gates.kind, gates.reach, gates.worker_id, gates.runbook_name, gates.batch_id, gates.phase_execution_id, gates.member_key, gates.member_key_fold, gates.shut_from, gates.shut_until, gates.shut_by, gates.reason, gates.id, gates.hold_key, gates.allowed, gates.swept_at, gates.opened_at, gates.opened_by, gates.opened_reason 
FROM gates 
WHERE gates.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.gatekeeping.gates_page
SELECT TOP 7 gates.kind, gates.reach, gates.worker_id, gates.runbook_name, gates.batch_id, gates.phase_execution_id, gates.member_key, gates.member_key_fold, gates.shut_from, gates.shut_until, gates.shut_by, gates.reason, gates.id, gates.hold_key, gates.allowed, gates.swept_at, gates.opened_at, gates.opened_by, gates.opened_reason 
FROM gates 
WHERE gates.opened_at IS NULL AND gates.batch_id = :batch_id_1 AND gates.kind = :kind_1 AND gates.id < :id_1 ORDER BY gates.id DESC
GO

-- store.gatekeeping.gates_since
SELECT gates.id, gates.kind, gates.reach, gates.worker_id, gates.runbook_name, gates.member_key_fold, gates.batch_id, gates.shut_from, gates.shut_until, gates.shut_by, gates.reason, gates.opened_at, gates.phase_execution_id, gates.hold_key 
FROM gates 
WHERE gates.reach = 'send' AND gates.shut_from < :p_at AND (gates.opened_at IS NULL OR gates.opened_at > :p_since) AND (gates.shut_until IS NULL OR gates.shut_until > :p_since)
GO

-- store.gatekeeping.gates_to_sweep
SELECT gates.kind, gates.reach, gates.worker_id, gates.runbook_name, gates.batch_id, gates.phase_execution_id, gates.member_key, gates.member_key_fold, gates.shut_from, gates.shut_until, gates.shut_by, gates.reason, gates.id, gates.hold_key, gates.allowed, gates.swept_at, gates.opened_at, gates.opened_by, gates.opened_reason 
FROM gates 
WHERE gates.hold_key IS NULL AND gates.swept_at IS NULL AND (gates.shut_from <= :p_at OR gates.kind != 'freeze' OR gates.swept_at IS NOT NULL)
GO

-- store.gatekeeping.note_swept
UPDATE gates SET swept_at=:p_at WHERE gates.id = :p_gate_id AND gates.opened_at IS NOT NULL
GO

-- store.gatekeeping.open_gates
UPDATE gates SET swept_at=CASE WHEN (NOT (gates.shut_from <= :p_at OR gates.kind != 'freeze' OR gates.swept_at IS NOT NULL)) THEN :p_at END, opened_at=:p_at, opened_by=:p_by, opened_reason=:p_reason OUTPUT inserted.id, inserted.kind, inserted.batch_id, inserted.runbook_name, inserted.shut_from WHERE gates.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND gates.opened_at IS NULL AND gates.hold_key IS NULL
GO

-- store.gatekeeping.shut_gate
INSERT INTO gates (kind, reach, worker_id, runbook_name, batch_id, phase_execution_id, member_key, member_key_fold, shut_from, shut_until, shut_by, reason) OUTPUT inserted.id SELECT TOP 2147483647 anon_1.kind AS kind, anon_1.reach AS reach, anon_1.worker_id AS worker_id, anon_1.runbook_name AS runbook_name, anon_1.batch_id AS batch_id, anon_1.phase_execution_id AS phase_execution_id, anon_1.member_key AS member_key, anon_1.member_key_fold AS member_key_fold, anon_1.shut_from AS shut_from, anon_1.shut_until AS shut_until, anon_1.shut_by AS shut_by, anon_1.reason AS reason 
FROM (SELECT CAST([kind] AS NVARCHAR(21)) AS [kind], CAST([reach] AS NVARCHAR(21)) AS [reach], CAST([worker_id] AS NVARCHAR(101)) AS [worker_id], CAST([runbook_name] AS NVARCHAR(101)) AS [runbook_name], [batch_id], [phase_execution_id], CAST([member_key] AS NVARCHAR(401)) AS [member_key], CAST([member_key_fold] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [member_key_fold], [shut_from], [shut_until], CAST([shut_by] AS NVARCHAR(201)) AS [shut_by], [reason], [place] FROM OPENJSON(:p_rows) WITH ([kind] NVARCHAR(MAX) '$[0]', [reach] NVARCHAR(MAX) '$[1]', [worker_id] NVARCHAR(MAX) '$[2]', [runbook_name] NVARCHAR(MAX) '$[3]', [batch_id] BIGINT '$[4]', [phase_execution_id] BIGINT '$[5]', [member_key] NVARCHAR(MAX) '$[6]', [member_key_fold] NVARCHAR(MAX) '$[7]', [shut_from] DATETIME2(6) '$[8]', [shut_until] DATETIME2(6) '$[9]', [shut_by] NVARCHAR(MAX) '$[10]', [reason] NVARCHAR(MAX) '$[11]', [place] BIGINT '$[12]')) AS anon_1 ORDER BY anon_1.place
GO

-- store.gatekeeping.unopened_gates
SELECT gates.kind, gates.reach, gates.worker_id, gates.runbook_name, gates.batch_id, gates.phase_execution_id, gates.member_key, gates.member_key_fold, gates.shut_from, gates.shut_until, gates.shut_by, gates.reason, gates.id, gates.hold_key, gates.allowed, gates.swept_at, gates.opened_at, gates.opened_by, gates.opened_reason 
FROM gates 
WHERE gates.opened_at IS NULL AND gates.hold_key IS NULL
GO

-- store.gates.freezes_ahead
SELECT gates.id, gates.kind, gates.reach, gates.worker_id, gates.runbook_name, gates.member_key_fold, gates.batch_id, gates.shut_from, gates.shut_until, gates.shut_by, gates.reason, gates.opened_at, gates.phase_execution_id, gates.hold_key 
FROM gates 
WHERE gates.opened_at IS NULL AND gates.kind = 'freeze' AND (gates.shut_until IS NULL OR gates.shut_until > :p_at)
GO

-- store.gates.gates_in_force
SELECT gates.id, gates.kind, gates.reach, gates.worker_id, gates.runbook_name, gates.member_key_fold, gates.batch_id, gates.shut_from, gates.shut_until, gates.shut_by, gates.reason, gates.opened_at, gates.phase_execution_id, gates.hold_key 
FROM gates 
WHERE gates.opened_at IS NULL AND (gates.shut_from <= :p_at OR gates.kind != 'freeze' OR gates.swept_at IS NOT NULL) AND (gates.shut_until IS NULL OR gates.shut_until > :p_at)
GO

-- store.gatetimes.runbook_names
SELECT batches.id, batches.runbook_name 
FROM batches 
WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.holds.approve_hold
UPDATE gates SET approved_by=:p_by, approved_at=:p_at OUTPUT inserted.batch_id WHERE gates.batch_id = :p_batch_id AND gates.opened_at IS NULL AND gates.hold_key IS NOT NULL AND gates.hold_key = :p_hold_key AND gates.approved_at IS NULL
GO

-- store.holds.hold_batches
SELECT gates.id, gates.batch_id, gates.hold_key 
FROM gates 
WHERE gates.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND gates.opened_at IS NULL AND gates.hold_key IS NOT NULL
GO

-- store.holds.hold_batches
UPDATE batches SET hold_count=(batches.hold_count + :hold_count_1) OUTPUT inserted.id WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batches.status IN ('active', 'detected', 'init_dispatched')
GO

-- store.holds.release_batches
UPDATE gates SET opened_at=:p_at, opened_by=coalesce(gates.approved_by, :p_by) OUTPUT inserted.id, inserted.kind, inserted.batch_id, inserted.runbook_name, inserted.shut_from WHERE gates.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND gates.opened_at IS NULL AND gates.hold_key IS NOT NULL
GO

-- store.idempotency.begin_request
DELETE FROM idempotency_keys WHERE idempotency_keys.actor = :p_actor AND idempotency_keys.idempotency_key = :p_key AND idempotency_keys.expires_at <= :p_at
GO

-- store.idempotency.begin_request
INSERT INTO idempotency_keys (actor, idempotency_key, request_hash, created_at, expires_at) OUTPUT inserted.actor SELECT TOP 2147483647 anon_1.actor AS actor, anon_1.idempotency_key AS idempotency_key, anon_1.request_hash AS request_hash, anon_1.created_at AS created_at, anon_1.expires_at AS expires_at 
FROM (SELECT CAST([actor] AS NVARCHAR(201)) AS [actor], CAST([idempotency_key] AS NVARCHAR(201)) AS [idempotency_key], CAST([request_hash] AS NVARCHAR(65)) AS [request_hash], [created_at], [expires_at], [place] FROM OPENJSON(:p_rows) WITH ([actor] NVARCHAR(MAX) '$[0]', [idempotency_key] NVARCHAR(MAX) '$[1]', [request_hash] NVARCHAR(MAX) '$[2]', [created_at] DATETIME2(6) '$[3]', [expires_at] DATETIME2(6) '$[4]', [place] BIGINT '$[5]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM idempotency_keys AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.actor = anon_1.actor AND there.idempotency_key = anon_1.idempotency_key)) ORDER BY anon_1.place
GO

-- store.idempotency.finish_request
UPDATE idempotency_keys SET response_status=:p_status, response_json=:p_response_json WHERE idempotency_keys.actor = :p_actor AND idempotency_keys.idempotency_key = :p_key AND idempotency_keys.response_status IS NULL
GO

-- store.idempotency.forget_requests
DELETE FROM idempotency_keys WHERE idempotency_keys.expires_at <= :expires_at_1
GO

-- store.idempotency.have_requests_run_out
SELECT TOP 1 idempotency_keys.actor 
FROM idempotency_keys 
WHERE idempotency_keys.expires_at <= :p_at
GO

-- store.inclusions.include
INSERT INTO member_inclusions (runbook_key, member_key_fold, runbook_name, member_key, batch_time, included_at, included_by, reason, applied_at) SELECT TOP 2147483647 anon_1.runbook_key AS runbook_key, anon_1.member_key_fold AS member_key_fold, :p_shared_runbook_name AS runbook_name, :p_shared_member_key AS member_key, :p_shared_batch_time AS batch_time, :p_shared_included_at AS included_at, :p_shared_included_by AS included_by, :p_shared_reason AS reason, :p_shared_applied_at AS applied_at 
FROM (SELECT CAST([runbook_key] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [runbook_key], CAST([member_key_fold] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [member_key_fold], [place] FROM OPENJSON(:p_rows) WITH ([runbook_key] NVARCHAR(MAX) '$[0]', [member_key_fold] NVARCHAR(MAX) '$[1]', [place] BIGINT '$[2]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM member_inclusions AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.runbook_key = anon_1.runbook_key AND there.member_key_fold = anon_1.member_key_fold)) ORDER BY anon_1.place
GO

-- store.inclusions.include
UPDATE member_inclusions SET runbook_name=:p_values_runbook_name, member_key=:p_values_member_key, batch_time=:p_values_batch_time, included_at=:p_values_included_at, included_by=:p_values_included_by, reason=:p_values_reason, applied_at=:p_values_applied_at WHERE member_inclusions.runbook_key = :p_runbook_key AND member_inclusions.member_key_fold = :p_member_key_fold
GO

-- store.inclusions.note_let_in
UPDATE member_inclusions SET applied_at=:p_at WHERE member_inclusions.runbook_key = :p_runbook_key AND member_inclusions.member_key_fold IN (SELECT anon_1.value 
FROM (SELECT CAST([value] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [value] FROM OPENJSON(:p_keys) WITH ([value] NVARCHAR(MAX) '$[0]')) AS anon_1) AND member_inclusions.applied_at IS NULL
GO

-- store.inclusions.waiting_inclusions
SELECT member_inclusions.member_key_fold, member_inclusions.batch_time 
FROM member_inclusions 
WHERE member_inclusions.runbook_key = :p_runbook_key AND member_inclusions.applied_at IS NULL
GO

-- store.inflight.batches_in_flight
SELECT phase_executions.id, phase_executions.batch_id, phase_executions.runbook_version, phase_executions.phase_name, phase_executions.phase_index, phase_executions.offset_minutes, phase_executions.due_at, phase_executions.status, phase_executions.dispatched_at, phase_executions.dispatch_count, phase_executions.expanded_at, phase_executions.completed_at, phase_executions.member_count, phase_executions.pilot_done_at, phase_executions.woken_at, phase_executions.late_after 
FROM phase_executions 
WHERE phase_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.inits.batches_before_init
SELECT batches.id, batches.runbook_id, batches.runbook_name, batches.batch_start_time, batches.status, batches.is_manual, batches.created_by, batches.current_phase, batches.detected_at, batches.init_dispatched_at, batches.init_count, batches.completed_at, batches.reopened_at, batches.hold_count, batches.removals_approved_at 
FROM batches 
WHERE batches.status = 'init_dispatched' AND batches.is_manual = 0
GO

-- store.inits.begun_inits
SELECT DISTINCT init_executions.batch_id, init_executions.runbook_version, init_executions.init_count 
FROM init_executions 
WHERE init_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND init_executions.status != 'pending'
GO

-- store.inits.inits_of_batches
SELECT init_executions.id, init_executions.batch_id, init_executions.step_name, init_executions.step_index, init_executions.worker_id, init_executions.function_name, init_executions.params_json, init_executions.status, init_executions.attempt, init_executions.job_id, init_executions.result_json, init_executions.error_type, init_executions.error_message, init_executions.missing_outputs_json, init_executions.dispatched_at, init_executions.completed_at, init_executions.timeout_sec, init_executions.answered_at, init_executions.lost_at, init_executions.is_poll_step, init_executions.poll_interval_sec, init_executions.poll_timeout_sec, init_executions.poll_started_at, init_executions.last_polled_at, init_executions.poll_due_at, init_executions.poll_count, init_executions.on_failure, init_executions.retry_count, init_executions.max_retries, init_executions.retry_interval_sec, init_executions.retry_after, init_executions.throttled_since, init_executions.created_at, init_executions.runbook_version 
FROM init_executions 
WHERE init_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.inits.insert_inits
INSERT INTO init_executions (step_name, step_index, worker_id, timeout_sec, is_poll_step, poll_interval_sec, poll_timeout_sec, on_failure, max_retries, retry_interval_sec, batch_id, runbook_version, init_count, status, attempt, poll_count, retry_count, created_at) OUTPUT inserted.id, inserted.batch_id, inserted.step_name, inserted.step_index, inserted.worker_id, inserted.function_name, inserted.params_json, inserted.status, inserted.attempt, inserted.job_id, inserted.result_json, inserted.error_type, inserted.error_message, inserted.missing_outputs_json, inserted.dispatched_at, inserted.completed_at, inserted.timeout_sec, inserted.answered_at, inserted.lost_at, inserted.is_poll_step, inserted.poll_interval_sec, inserted.poll_timeout_sec, inserted.poll_started_at, inserted.last_polled_at, inserted.poll_due_at, inserted.poll_count, inserted.on_failure, inserted.retry_count, inserted.max_retries, inserted.retry_interval_sec, inserted.retry_after, inserted.throttled_since, inserted.created_at, inserted.runbook_version SELECT TOP 2147483647 anon_1.step_name AS step_name, anon_1.step_index AS step_index, anon_1.worker_id AS worker_id, anon_1.timeout_sec AS timeout_sec, anon_1.is_poll_step AS is_poll_step, anon_1.poll_interval_sec AS poll_interval_sec, anon_1.poll_timeout_sec AS poll_timeout_sec, anon_1.on_failure AS on_failure, anon_1.max_retries AS max_retries, anon_1.retry_interval_sec AS retry_interval_sec, anon_1.batch_id AS batch_id, anon_1.runbook_version AS runbook_version, anon_1.init_count AS init_count, :p_shared_status AS status, :p_shared_attempt AS attempt, :p_shared_poll_count AS poll_count, :p_shared_retry_count AS retry_count, :p_shared_created_at AS created_at 
FROM (SELECT CAST([step_name] AS NVARCHAR(101)) AS [step_name], [step_index], CAST([worker_id] AS NVARCHAR(101)) AS [worker_id], [timeout_sec], [is_poll_step], [poll_interval_sec], [poll_timeout_sec], CAST([on_failure] AS NVARCHAR(101)) AS [on_failure], [max_retries], [retry_interval_sec], [batch_id], [runbook_version], [init_count], [place] FROM OPENJSON(:p_rows) WITH ([step_name] NVARCHAR(MAX) '$[0]', [step_index] BIGINT '$[1]', [worker_id] NVARCHAR(MAX) '$[2]', [timeout_sec] BIGINT '$[3]', [is_poll_step] BIT '$[4]', [poll_interval_sec] BIGINT '$[5]', [poll_timeout_sec] BIGINT '$[6]', [on_failure] NVARCHAR(MAX) '$[7]', [max_retries] BIGINT '$[8]', [retry_interval_sec] BIGINT '$[9]', [batch_id] BIGINT '$[10]', [runbook_version] BIGINT '$[11]', [init_count] BIGINT '$[12]', [place] BIGINT '$[13]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM init_executions AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.batch_id = anon_1.batch_id AND there.runbook_version = anon_1.runbook_version AND there.step_index = anon_1.step_index)) ORDER BY anon_1.place
GO

-- store.inits.latest_init_versions
SELECT init_executions.batch_id, max(init_executions.runbook_version) AS max_1 
FROM init_executions 
WHERE init_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) GROUP BY init_executions.batch_id
GO

-- store.inits.note_requested
UPDATE init_executions SET init_count=:p_values_init_count OUTPUT inserted.id WHERE init_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.jobsout.has_had_work
SELECT TOP 1 step_executions.id 
FROM step_executions 
WHERE step_executions.worker_id = :worker_id_1
GO

-- store.jobsout.jobs_out
SELECT anon_1.worker_id, count(*) AS jobs, min(anon_1.dispatched_at) AS oldest_at, min(anon_1.lost_at) AS first_lost_at 
FROM (SELECT step_executions.worker_id AS worker_id, step_executions.dispatched_at AS dispatched_at, step_executions.lost_at AS lost_at 
FROM step_executions 
WHERE step_executions.lost_at IS NOT NULL UNION ALL SELECT init_executions.worker_id AS worker_id, init_executions.dispatched_at AS dispatched_at, init_executions.lost_at AS lost_at 
FROM init_executions 
WHERE init_executions.lost_at IS NOT NULL UNION ALL SELECT rollback_executions.worker_id AS worker_id, rollback_executions.dispatched_at AS dispatched_at, rollback_executions.lost_at AS lost_at 
FROM rollback_executions 
WHERE rollback_executions.lost_at IS NOT NULL) AS anon_1 GROUP BY anon_1.worker_id ORDER BY anon_1.worker_id
GO

-- store.joins.active_members
SELECT batch_members.id, batch_members.epoch 
FROM batch_members 
WHERE batch_members.batch_id = :p_batch_id AND batch_members.status = 'active' AND coalesce(batch_members.joined_no, :coalesce_1) > :p_after_no
GO

-- store.joins.count_joins
UPDATE batches SET join_count=(coalesce(batches.join_count, :coalesce_1) + :coalesce_2) OUTPUT inserted.id, inserted.join_count WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.joins.gone_since
SELECT count(*) AS count_1 
FROM batch_members 
WHERE batch_members.batch_id = :batch_id_1 AND coalesce(batch_members.joined_no, :coalesce_1) <= :coalesce_2 AND coalesce(batch_members.joined_no, :coalesce_1) > :coalesce_3 AND batch_members.status = 'active'
GO

-- store.joins.gone_since
SELECT TOP 7 batch_members.member_key 
FROM batch_members 
WHERE batch_members.batch_id = :batch_id_1 AND coalesce(batch_members.joined_no, :coalesce_1) <= :coalesce_2 AND coalesce(batch_members.joined_no, :coalesce_1) > :coalesce_3 AND batch_members.status != 'active' AND (batch_members.removed_at IS NOT NULL OR batch_members.failed_at IS NOT NULL) ORDER BY coalesce(batch_members.removed_at, batch_members.failed_at) DESC, batch_members.id
GO

-- store.joins.join_count
SELECT batches.join_count 
FROM batches 
WHERE batches.id = :p_batch_id
GO

-- store.joins.joined_after
SELECT count(*) AS count_1 
FROM batch_members 
WHERE batch_members.batch_id = :batch_id_1 AND batch_members.status = 'active' AND coalesce(batch_members.joined_no, :coalesce_1) > :coalesce_2
GO

-- store.joins.late_joins
SELECT batch_members.batch_id, batch_members.joined_no, count(*) AS count_1 
FROM batch_members 
WHERE batch_members.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batch_members.joined_no IS NOT NULL AND batch_members.status = 'active' GROUP BY batch_members.batch_id, batch_members.joined_no
GO

-- store.joins.number_returned
SELECT DISTINCT batch_members.batch_id 
FROM batch_members 
WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_member_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.joins.number_returned
UPDATE batches SET join_count=(coalesce(batches.join_count, :coalesce_1) + :coalesce_2) OUTPUT inserted.id, inserted.join_count WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.joins.number_returned
UPDATE batch_members SET joined_no=(SELECT batches.join_count 
FROM batches 
WHERE batches.id = batch_members.batch_id) WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_member_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.joins.refreshed_since
SELECT count(*) AS count_1 
FROM batch_members 
WHERE batch_members.batch_id = :batch_id_1 AND batch_members.status = 'active' AND batch_members.refreshed_at > :refreshed_at_1
GO

-- store.lateness.count_anew
UPDATE phase_executions SET late_after=:p_limit WHERE phase_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND phase_executions.status = 'pending' AND phase_executions.due_at <= :p_at
GO

-- store.lateness.inits_let_in_late
SELECT gates.batch_id, gates.shown_json 
FROM gates 
WHERE gates.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND gates.kind = 'late' AND gates.phase_execution_id IS NULL AND gates.hold_key IS NULL AND gates.opened_at IS NOT NULL AND (gates.opened_by NOT IN ('calendar', 'system'))
GO

-- store.lateness.late_gates
SELECT gates.id, gates.phase_execution_id, gates.shown_json, phase_executions.status, phase_executions.due_at 
FROM gates JOIN phase_executions ON gates.phase_execution_id = phase_executions.id 
WHERE gates.opened_at IS NULL AND gates.kind = 'late' AND gates.phase_execution_id IS NOT NULL
GO

-- store.lateness.late_gates_opened_by_people
SELECT gates.id, gates.phase_execution_id, gates.shown_json, phase_executions.status, phase_executions.due_at 
FROM gates JOIN phase_executions ON gates.phase_execution_id = phase_executions.id 
WHERE gates.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_phase_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND gates.opened_at IS NOT NULL AND (gates.opened_by NOT IN ('calendar', 'system')) AND gates.kind = 'late' AND gates.phase_execution_id IS NOT NULL
GO

-- store.lateness.late_inits
SELECT gates.id, gates.batch_id, gates.shown_json, batches.batch_start_time, batches.status 
FROM gates JOIN batches ON batches.id = gates.batch_id 
WHERE gates.kind = 'late' AND gates.phase_execution_id IS NULL AND gates.hold_key IS NULL AND gates.opened_at IS NULL
GO

-- store.lateness.lift_limits
UPDATE phase_executions SET late_after=:p_values_late_after OUTPUT inserted.id WHERE phase_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND phase_executions.status = 'pending'
GO

-- store.lateness.shut_late_gates
INSERT INTO gates (batch_id, phase_execution_id, shut_from, swept_at, reason, shown_json, kind, reach, shut_by) OUTPUT inserted.id, inserted.kind, inserted.reach, inserted.worker_id, inserted.runbook_name, inserted.member_key_fold, inserted.batch_id, inserted.shut_from, inserted.shut_until, inserted.shut_by, inserted.reason, inserted.opened_at, inserted.phase_execution_id, inserted.hold_key SELECT TOP 2147483647 anon_1.batch_id AS batch_id, anon_1.phase_execution_id AS phase_execution_id, anon_1.shut_from AS shut_from, anon_1.swept_at AS swept_at, anon_1.reason AS reason, anon_1.shown_json AS shown_json, :p_shared_kind AS kind, :p_shared_reach AS reach, :p_shared_shut_by AS shut_by 
FROM (SELECT [batch_id], [phase_execution_id], [shut_from], [swept_at], [reason], [shown_json], [place] FROM OPENJSON(:p_rows) WITH ([batch_id] BIGINT '$[0]', [phase_execution_id] BIGINT '$[1]', [shut_from] DATETIME2(6) '$[2]', [swept_at] DATETIME2(6) '$[3]', [reason] NVARCHAR(MAX) '$[4]', [shown_json] NVARCHAR(MAX) '$[5]', [place] BIGINT '$[6]')) AS anon_1 ORDER BY anon_1.place
GO

-- store.lateness.shut_late_inits
INSERT INTO gates (batch_id, phase_execution_id, shut_from, swept_at, reason, shown_json, kind, reach, shut_by) SELECT TOP 2147483647 anon_1.batch_id AS batch_id, anon_1.phase_execution_id AS phase_execution_id, anon_1.shut_from AS shut_from, anon_1.swept_at AS swept_at, anon_1.reason AS reason, anon_1.shown_json AS shown_json, :p_shared_kind AS kind, :p_shared_reach AS reach, :p_shared_shut_by AS shut_by 
FROM (SELECT [batch_id], [phase_execution_id], [shut_from], [swept_at], [reason], [shown_json], [place] FROM OPENJSON(:p_rows) WITH ([batch_id] BIGINT '$[0]', [phase_execution_id] BIGINT '$[1]', [shut_from] DATETIME2(6) '$[2]', [swept_at] DATETIME2(6) '$[3]', [reason] NVARCHAR(MAX) '$[4]', [shown_json] NVARCHAR(MAX) '$[5]', [place] BIGINT '$[6]')) AS anon_1 ORDER BY anon_1.place
GO

-- store.leases.acquire_lease
INSERT INTO leases (name, holder, token, expires_at, acquired_at) SELECT TOP 2147483647 anon_1.name AS name, anon_1.holder AS holder, anon_1.token AS token, anon_1.expires_at AS expires_at, :p_shared_acquired_at AS acquired_at 
FROM (SELECT CAST([name] AS NVARCHAR(101)) AS [name], CAST([holder] AS NVARCHAR(201)) AS [holder], [token], [expires_at], [place] FROM OPENJSON(:p_rows) WITH ([name] NVARCHAR(MAX) '$[0]', [holder] NVARCHAR(MAX) '$[1]', [token] BIGINT '$[2]', [expires_at] DATETIME2(6) '$[3]', [place] BIGINT '$[4]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM leases AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.name = anon_1.name)) ORDER BY anon_1.place
GO

-- store.leases.acquire_lease
SELECT leases.token 
FROM leases WITH (UPDLOCK, ROWLOCK) 
WHERE leases.name = :p_name AND leases.expires_at <= sysutcdatetime()
GO

-- store.leases.acquire_lease
SELECT sysutcdatetime() AS sysutcdatetime_1
GO

-- store.leases.acquire_lease
UPDATE leases SET holder=:p_holder, token=(leases.token + :token_1), acquired_at=:p_now, expires_at=:p_until OUTPUT inserted.name, inserted.holder, inserted.token, inserted.expires_at WHERE leases.name = :p_name AND leases.expires_at <= sysutcdatetime()
GO

-- store.leases.confirm_lease
SELECT leases.token 
FROM leases WITH (UPDLOCK, ROWLOCK) 
WHERE leases.name = :p_name AND leases.token = :p_token AND leases.expires_at > sysutcdatetime()
GO

-- store.leases.held_leases
SELECT leases.name, leases.holder, leases.token, leases.expires_at 
FROM leases 
WHERE leases.expires_at > sysutcdatetime() ORDER BY leases.name
GO

-- store.leases.known_leases
SELECT leases.name, leases.holder, leases.token, leases.expires_at 
FROM leases 
WHERE leases.token > 0 ORDER BY leases.name
GO

-- store.leases.release_lease
UPDATE leases SET expires_at=sysutcdatetime() WHERE leases.name = :name_1 AND leases.token = :token_1 AND leases.expires_at > sysutcdatetime()
GO

-- store.leases.renew_lease
SELECT leases.token 
FROM leases WITH (UPDLOCK, ROWLOCK) 
WHERE leases.name = :p_name AND leases.token = :p_token AND leases.expires_at > sysutcdatetime()
GO

-- store.leases.renew_lease
SELECT sysutcdatetime() AS sysutcdatetime_1
GO

-- store.leases.renew_lease
UPDATE leases SET expires_at=:p_until OUTPUT inserted.name, inserted.holder, inserted.token, inserted.expires_at WHERE leases.name = :p_name AND leases.token = :p_token AND leases.expires_at > sysutcdatetime()
GO

-- store.matrix.members_of_matrix
SELECT batch_members.id, batch_members.epoch, batch_members.status, CASE WHEN (batch_members.caught_up_at IS NOT NULL) THEN 1 ELSE 0 END AS is_caught_up, CASE WHEN (batch_members.undone_at IS NOT NULL) THEN 1 ELSE 0 END AS is_undone, batch_members.first_phase_version, batch_members.first_phase_place 
FROM batch_members 
WHERE batch_members.batch_id = :p_batch_id ORDER BY batch_members.id
GO

-- store.matrix.members_with_key_part
SELECT TOP 7 batch_members.id 
FROM batch_members 
WHERE batch_members.batch_id = :batch_id_1 AND batch_members.member_key_fold LIKE :member_key_fold_1 ESCAPE '/' ORDER BY batch_members.id
GO

-- store.matrix.packed_steps_of_phase
SELECT CAST(CAST(step_executions.batch_member_id - :p_first_member AS BIGINT) * 4294967296 + CAST(step_executions.epoch % 4096 AS BIGINT) * 1048576 + step_executions.step_index * 256 + CASE WHEN (step_executions.status = 'pending') THEN 1 WHEN (step_executions.status = 'dispatched') THEN 2 WHEN (step_executions.status = 'succeeded') THEN 4 WHEN (step_executions.status = 'failed') THEN 5 WHEN (step_executions.status = 'polling') THEN 3 WHEN (step_executions.status = 'poll_timeout') THEN 6 WHEN (step_executions.status = 'cancelled') THEN 7 END + CASE WHEN (step_executions.attempt > 15) THEN 15 ELSE step_executions.attempt END * 16 AS BIGINT) AS packed 
FROM step_executions 
WHERE step_executions.phase_execution_id = :p_phase_id
GO

-- store.members.fail_members
UPDATE batch_members SET status=:p_values_status, failed_at=:p_values_failed_at OUTPUT inserted.id, inserted.batch_id FROM batch_members, (SELECT [id], [epoch] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [epoch] BIGINT '$[1]')) AS anon_1 WHERE batch_members.id = anon_1.id AND batch_members.epoch = anon_1.epoch AND batch_members.status = 'active'
GO

-- store.members.follow_new_starts
UPDATE batch_members SET source_time=(SELECT batches.batch_start_time 
FROM batches 
WHERE batches.id = batch_members.batch_id) WHERE batch_members.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batch_members.status = 'active'
GO

-- store.members.insert_members
INSERT INTO batch_members (batch_id, member_key, member_key_fold, data_json, data_hash, worker_data_json, caught_up_at, source_time, counted_as, joined_no, status, epoch, added_at) OUTPUT inserted.id, inserted.batch_id, inserted.member_key_fold SELECT TOP 2147483647 anon_1.batch_id AS batch_id, anon_1.member_key AS member_key, anon_1.member_key_fold AS member_key_fold, anon_1.data_json AS data_json, anon_1.data_hash AS data_hash, anon_1.worker_data_json AS worker_data_json, anon_1.caught_up_at AS caught_up_at, anon_1.source_time AS source_time, anon_1.counted_as AS counted_as, anon_1.joined_no AS joined_no, :p_shared_status AS status, :p_shared_epoch AS epoch, :p_shared_added_at AS added_at 
FROM (SELECT [batch_id], CAST([member_key] AS NVARCHAR(401)) AS [member_key], CAST([member_key_fold] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [member_key_fold], [data_json], CAST([data_hash] AS NVARCHAR(33)) AS [data_hash], [worker_data_json], [caught_up_at], [source_time], [counted_as], [joined_no], [place] FROM OPENJSON(:p_rows) WITH ([batch_id] BIGINT '$[0]', [member_key] NVARCHAR(MAX) '$[1]', [member_key_fold] NVARCHAR(MAX) '$[2]', [data_json] NVARCHAR(MAX) '$[3]', [data_hash] NVARCHAR(MAX) '$[4]', [worker_data_json] NVARCHAR(MAX) '$[5]', [caught_up_at] DATETIME2(6) '$[6]', [source_time] DATETIME2(6) '$[7]', [counted_as] BIGINT '$[8]', [joined_no] BIGINT '$[9]', [place] BIGINT '$[10]')) AS anon_1 ORDER BY anon_1.place
GO

-- store.members.keep_outputs
UPDATE batch_members SET worker_data_json=anon_1.worker_data_json OUTPUT inserted.id, inserted.batch_id FROM batch_members, (SELECT [id], [epoch], [worker_data_json] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [epoch] BIGINT '$[1]', [worker_data_json] NVARCHAR(MAX) '$[2]')) AS anon_1 WHERE batch_members.id = anon_1.id AND batch_members.epoch = anon_1.epoch
GO

-- store.members.member_labels
SELECT batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.epoch 
FROM batch_members 
WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.members.members_by_id
SELECT batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.member_key_fold, batch_members.status, batch_members.epoch, batch_members.first_phase_version, batch_members.first_phase_place, batch_members.data_json, batch_members.data_hash, batch_members.worker_data_json, batch_members.added_at, batch_members.add_dispatched_at, batch_members.caught_up_at, batch_members.left_source_at, batch_members.removed_at, batch_members.removed_by, batch_members.remove_reason, batch_members.remove_dispatched_at, batch_members.seen_off_at, batch_members.failed_at, batch_members.undone_at, batch_members.is_pilot 
FROM batch_members 
WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.members.note_add_dispatched
UPDATE batch_members SET add_dispatched_at=:p_values_add_dispatched_at OUTPUT inserted.id, inserted.batch_id WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batch_members.status = 'active'
GO

-- store.members.note_caught_up
UPDATE batch_members SET caught_up_at=:p_values_caught_up_at OUTPUT inserted.id, inserted.batch_id FROM batch_members, (SELECT [id], [epoch] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [epoch] BIGINT '$[1]')) AS anon_1 WHERE batch_members.id = anon_1.id AND batch_members.epoch = anon_1.epoch AND batch_members.status = 'active' AND batch_members.caught_up_at IS NULL
GO

-- store.members.note_in_source
UPDATE batch_members SET left_source_at=:p_values_left_source_at OUTPUT inserted.id, inserted.batch_id WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batch_members.left_source_at IS NOT NULL
GO

-- store.members.note_left_source
UPDATE batch_members SET left_source_at=:p_values_left_source_at OUTPUT inserted.id, inserted.batch_id WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batch_members.status = 'active' AND batch_members.left_source_at IS NULL
GO

-- store.members.note_remove_dispatched
UPDATE batch_members SET remove_dispatched_at=:p_values_remove_dispatched_at OUTPUT inserted.id, inserted.batch_id WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batch_members.status = 'removed'
GO

-- store.members.note_seen_off
UPDATE batch_members SET seen_off_at=:p_values_seen_off_at OUTPUT inserted.id, inserted.batch_id FROM batch_members, (SELECT [id], [epoch] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [epoch] BIGINT '$[1]')) AS anon_1 WHERE batch_members.id = anon_1.id AND batch_members.epoch = anon_1.epoch AND batch_members.status = 'removed' AND batch_members.seen_off_at IS NULL
GO

-- store.members.reactivate_members
UPDATE batch_members SET status=:p_values_status, caught_up_at=:p_values_caught_up_at, failed_at=:p_values_failed_at OUTPUT inserted.id, inserted.batch_id WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batch_members.status = 'failed'
GO

-- store.members.refresh_members
SELECT sysutcdatetime() AS sysutcdatetime_1
GO

-- store.members.refresh_members
UPDATE batch_members SET data_json=anon_1.data_json, data_hash=anon_1.data_hash, refreshed_at=:p_values_refreshed_at OUTPUT inserted.id, inserted.batch_id FROM batch_members, (SELECT [id], [data_json], CAST([data_hash] AS NVARCHAR(33)) AS [data_hash] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [data_json] NVARCHAR(MAX) '$[1]', [data_hash] NVARCHAR(MAX) '$[2]')) AS anon_1 WHERE batch_members.id = anon_1.id AND batch_members.status = 'active'
GO

-- store.members.remove_members
UPDATE batch_members SET status=:p_values_status, caught_up_at=:p_values_caught_up_at, removed_at=:p_values_removed_at, removed_by=:p_values_removed_by, remove_reason=:p_values_remove_reason, remove_dispatched_at=:p_values_remove_dispatched_at, seen_off_at=:p_values_seen_off_at OUTPUT inserted.id, inserted.batch_id WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batch_members.status = 'active'
GO

-- store.members.restart_members
UPDATE batch_members SET status=:p_values_status, epoch=(batch_members.epoch + :epoch_1), first_phase_version=anon_1.first_phase_version, first_phase_place=anon_1.first_phase_place, worker_data_json=:p_values_worker_data_json, added_at=:p_values_added_at, add_dispatched_at=:p_values_add_dispatched_at, caught_up_at=:p_values_caught_up_at, left_source_at=:p_values_left_source_at, removed_at=:p_values_removed_at, removed_by=:p_values_removed_by, remove_reason=:p_values_remove_reason, remove_dispatched_at=:p_values_remove_dispatched_at, seen_off_at=:p_values_seen_off_at, failed_at=:p_values_failed_at, undone_at=:p_values_undone_at, undo_version=:p_values_undo_version OUTPUT inserted.id, inserted.batch_id FROM batch_members, (SELECT [id], [first_phase_version], [first_phase_place] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [first_phase_version] BIGINT '$[1]', [first_phase_place] BIGINT '$[2]')) AS anon_1 WHERE batch_members.id = anon_1.id AND batch_members.status = 'failed'
GO

-- store.members.return_members
UPDATE batch_members SET status=:p_values_status, epoch=(batch_members.epoch + :epoch_1), first_phase_version=:p_values_first_phase_version, first_phase_place=:p_values_first_phase_place, data_json=anon_1.data_json, data_hash=anon_1.data_hash, worker_data_json=:p_values_worker_data_json, added_at=:p_values_added_at, add_dispatched_at=:p_values_add_dispatched_at, caught_up_at=:p_values_caught_up_at, left_source_at=:p_values_left_source_at, removed_at=:p_values_removed_at, removed_by=:p_values_removed_by, remove_reason=:p_values_remove_reason, remove_dispatched_at=:p_values_remove_dispatched_at, seen_off_at=:p_values_seen_off_at, failed_at=:p_values_failed_at, undone_at=:p_values_undone_at, undo_version=:p_values_undo_version, source_time=anon_1.source_time OUTPUT inserted.id, inserted.batch_id FROM batch_members, (SELECT [id], [data_json], CAST([data_hash] AS NVARCHAR(33)) AS [data_hash], [source_time] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [data_json] NVARCHAR(MAX) '$[1]', [data_hash] NVARCHAR(MAX) '$[2]', [source_time] DATETIME2(6) '$[3]')) AS anon_1 WHERE batch_members.id = anon_1.id AND batch_members.status = 'removed' AND batch_members.undone_at IS NOT NULL
GO

-- store.members.return_members
SELECT DISTINCT batch_members.batch_id 
FROM batch_members 
WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_member_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.members.return_members
UPDATE batches SET join_count=(coalesce(batches.join_count, :coalesce_1) + :coalesce_2) OUTPUT inserted.id, inserted.join_count WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.members.return_members
UPDATE batch_members SET joined_no=(SELECT batches.join_count 
FROM batches 
WHERE batches.id = batch_members.batch_id) WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_member_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.memberstates.last_completed_phases
SELECT batch_members.id AS member_id, phase_executions.phase_name, phase_executions.runbook_version, phase_executions.offset_minutes, phase_executions.phase_index 
FROM batch_members JOIN step_executions ON step_executions.batch_member_id = batch_members.id AND step_executions.epoch = batch_members.epoch JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id 
WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) GROUP BY batch_members.id, phase_executions.id, phase_executions.phase_name, phase_executions.runbook_version, phase_executions.offset_minutes, phase_executions.phase_index 
HAVING min(CASE WHEN (step_executions.status = 'succeeded') THEN :param_1 ELSE :param_2 END) = 1
GO

-- store.memberstates.last_completed_phases
SELECT batch_members.id, batch_members.batch_id, batch_members.first_phase_version, batch_members.first_phase_place 
FROM batch_members 
WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:rows_1) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batch_members.first_phase_place > 0
GO

-- store.memberstates.last_completed_phases
SELECT phase_executions.id, phase_executions.batch_id, phase_executions.runbook_version, phase_executions.phase_name, phase_executions.phase_index, phase_executions.offset_minutes, phase_executions.due_at, phase_executions.status, phase_executions.dispatched_at, phase_executions.dispatch_count, phase_executions.expanded_at, phase_executions.completed_at, phase_executions.member_count, phase_executions.pilot_done_at, phase_executions.woken_at, phase_executions.late_after 
FROM phase_executions 
WHERE phase_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.memberstates.states_of_members
SELECT batch_members.id, CASE WHEN ((SELECT TOP 1 1 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND rollback_executions.status IN ('dispatched', 'pending', 'polling')) IS NOT NULL OR batch_members.status = 'removed' AND batch_members.removed_at IS NOT NULL AND batch_members.seen_off_at IS NULL AND (batch_members.remove_reason NOT IN ('excluded by a person', 'moved', 'the source no longer returned it, and its batch had not begun'))) THEN 'undoing' WHEN (batch_members.status = 'removed' AND batch_members.undone_at IS NOT NULL) THEN 'undone' WHEN (batch_members.status = 'removed') THEN 'left' WHEN (batch_members.status = 'failed') THEN 'failed' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'cancelled') IS NOT NULL) THEN 'stopped' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM step_executions 
WHERE step_executions.batch_member_id = batch_members.id AND step_executions.status IN ('dispatched', 'pending', 'polling') AND step_executions.epoch = batch_members.epoch) IS NOT NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'active') IS NOT NULL AND batch_members.caught_up_at IS NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'active') IS NOT NULL AND (SELECT TOP 1 1 
FROM phase_executions 
WHERE phase_executions.batch_id = batch_members.batch_id AND phase_executions.status = 'dispatched' AND phase_executions.expanded_at IS NULL) IS NOT NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM phase_executions 
WHERE phase_executions.batch_id = batch_members.batch_id AND phase_executions.status = 'pending') IS NOT NULL) THEN 'waiting' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status IN ('detected', 'init_dispatched')) IS NOT NULL) THEN 'waiting' WHEN (batch_members.status = 'active') THEN 'done' END AS anon_1 
FROM batch_members 
WHERE batch_members.id IN (SELECT anon_2.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_2)
GO

-- store.moves.cancel
UPDATE step_executions SET status=:p_values_status, completed_at=:p_values_completed_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index WHERE step_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'dispatched'
GO

-- store.moves.cancel
UPDATE step_executions SET status=:p_values_status, completed_at=:p_values_completed_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index WHERE step_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'pending'
GO

-- store.moves.cancel
UPDATE step_executions SET status=:p_values_status, completed_at=:p_values_completed_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index WHERE step_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'polling'
GO

-- store.moves.move_steps
UPDATE step_executions SET function_name=:p_shared_function_name, params_json=anon_1.params_json, status=:p_values_status, attempt=:p_shared_attempt, job_id=anon_1.job_id, dispatched_at=:p_values_dispatched_at, answered_at=:p_values_answered_at, lost_at=:p_shared_lost_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], CAST([job_id] AS NVARCHAR(101)) AS [job_id], [params_json] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [job_id] NVARCHAR(MAX) '$[1]', [params_json] NVARCHAR(MAX) '$[2]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.attempt = :p_shared_attempt - :param_1 AND step_executions.status = 'pending'
GO

-- store.moves.move_steps
UPDATE step_executions SET function_name=:p_shared_function_name, params_json=anon_1.params_json, status=:p_values_status, attempt=:p_shared_attempt, job_id=anon_1.job_id, dispatched_at=:p_values_dispatched_at, answered_at=:p_values_answered_at, lost_at=:p_shared_lost_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], CAST([job_id] AS NVARCHAR(101)) AS [job_id], [params_json] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [job_id] NVARCHAR(MAX) '$[1]', [params_json] NVARCHAR(MAX) '$[2]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.attempt = :p_shared_attempt - :param_1 AND step_executions.status = 'polling'
GO

-- store.moves.move_steps
UPDATE step_executions SET status=:p_values_status, result_json=:p_shared_result_json, error_type=:p_values_error_type, error_message=:p_values_error_message, error_fingerprint=:p_values_error_fingerprint, missing_outputs_json=:p_shared_missing_outputs_json, completed_at=:p_values_completed_at, answered_at=:p_values_answered_at, lost_at=:p_values_lost_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], CAST([job_id] AS NVARCHAR(101)) AS [job_id] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [job_id] NVARCHAR(MAX) '$[1]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.job_id = anon_1.job_id AND step_executions.status = 'dispatched' AND step_executions.answered_at IS NULL
GO

-- store.moves.move_steps
UPDATE step_executions SET status=:p_values_status, result_json=:p_shared_result_json, error_type=:p_values_error_type, error_message=:p_values_error_message, error_fingerprint=:p_values_error_fingerprint, missing_outputs_json=:p_shared_missing_outputs_json, completed_at=:p_values_completed_at, answered_at=:p_values_answered_at, lost_at=:p_values_lost_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], CAST([job_id] AS NVARCHAR(101)) AS [job_id] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [job_id] NVARCHAR(MAX) '$[1]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.job_id = anon_1.job_id AND step_executions.status = 'pending' AND step_executions.answered_at IS NULL
GO

-- store.moves.move_steps
UPDATE step_executions SET status=:p_values_status, result_json=anon_1.result_json, answered_at=:p_values_answered_at, lost_at=:p_values_lost_at, poll_started_at=coalesce(step_executions.poll_started_at, :g_at), last_polled_at=:p_values_last_polled_at, poll_due_at=anon_1.poll_due_at, poll_count=(step_executions.poll_count + :poll_count_1), retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], CAST([job_id] AS NVARCHAR(101)) AS [job_id], [result_json], [poll_due_at] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [job_id] NVARCHAR(MAX) '$[1]', [result_json] NVARCHAR(MAX) '$[2]', [poll_due_at] DATETIME2(6) '$[3]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.job_id = anon_1.job_id AND step_executions.status = 'dispatched' AND step_executions.answered_at IS NULL
GO

-- store.moves.move_steps
UPDATE step_executions SET status=:p_values_status, result_json=anon_1.result_json, answered_at=:p_values_answered_at, lost_at=:p_values_lost_at, poll_started_at=coalesce(step_executions.poll_started_at, :g_at), last_polled_at=:p_values_last_polled_at, poll_due_at=anon_1.poll_due_at, poll_count=(step_executions.poll_count + :poll_count_1), retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], CAST([job_id] AS NVARCHAR(101)) AS [job_id], [result_json], [poll_due_at] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [job_id] NVARCHAR(MAX) '$[1]', [result_json] NVARCHAR(MAX) '$[2]', [poll_due_at] DATETIME2(6) '$[3]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.job_id = anon_1.job_id AND step_executions.status = 'pending' AND step_executions.answered_at IS NULL
GO

-- store.moves.move_steps
UPDATE step_executions SET status=:p_values_status, result_json=anon_1.result_json, error_type=anon_1.error_type, error_message=anon_1.error_message, error_fingerprint=anon_1.error_fingerprint, completed_at=:p_values_completed_at, answered_at=:p_values_answered_at, lost_at=:p_values_lost_at, last_polled_at=:p_values_last_polled_at, poll_due_at=:p_values_poll_due_at, poll_count=(step_executions.poll_count + :poll_count_1), retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], CAST([job_id] AS NVARCHAR(101)) AS [job_id], [error_type], [error_message], [result_json], CAST([error_fingerprint] AS NVARCHAR(33)) AS [error_fingerprint] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [job_id] NVARCHAR(MAX) '$[1]', [error_type] NVARCHAR(MAX) '$[2]', [error_message] NVARCHAR(MAX) '$[3]', [result_json] NVARCHAR(MAX) '$[4]', [error_fingerprint] NVARCHAR(MAX) '$[5]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.job_id = anon_1.job_id AND step_executions.status = 'dispatched' AND step_executions.answered_at IS NULL
GO

-- store.moves.move_steps
UPDATE step_executions SET status=:p_values_status, result_json=anon_1.result_json, error_type=anon_1.error_type, error_message=anon_1.error_message, error_fingerprint=anon_1.error_fingerprint, completed_at=:p_values_completed_at, answered_at=:p_values_answered_at, lost_at=:p_values_lost_at, last_polled_at=:p_values_last_polled_at, poll_due_at=:p_values_poll_due_at, poll_count=(step_executions.poll_count + :poll_count_1), retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], CAST([job_id] AS NVARCHAR(101)) AS [job_id], [error_type], [error_message], [result_json], CAST([error_fingerprint] AS NVARCHAR(33)) AS [error_fingerprint] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [job_id] NVARCHAR(MAX) '$[1]', [error_type] NVARCHAR(MAX) '$[2]', [error_message] NVARCHAR(MAX) '$[3]', [result_json] NVARCHAR(MAX) '$[4]', [error_fingerprint] NVARCHAR(MAX) '$[5]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.job_id = anon_1.job_id AND step_executions.status = 'pending' AND step_executions.answered_at IS NULL
GO

-- store.moves.move_steps
UPDATE step_executions SET status=:p_values_status, error_type=anon_1.error_type, error_message=anon_1.error_message, answered_at=:p_values_answered_at, lost_at=:p_values_lost_at, retry_count=anon_1.retry_count, retry_after=anon_1.retry_after, throttled_since=anon_1.throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], CAST([job_id] AS NVARCHAR(101)) AS [job_id], [error_type], [error_message], [retry_after], [retry_count], [throttled_since] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [job_id] NVARCHAR(MAX) '$[1]', [error_type] NVARCHAR(MAX) '$[2]', [error_message] NVARCHAR(MAX) '$[3]', [retry_after] DATETIME2(6) '$[4]', [retry_count] BIGINT '$[5]', [throttled_since] DATETIME2(6) '$[6]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.job_id = anon_1.job_id AND step_executions.status = 'dispatched' AND step_executions.answered_at IS NULL
GO

-- store.moves.move_steps
UPDATE step_executions SET status=:p_values_status, result_json=anon_1.result_json, error_type=anon_1.error_type, error_message=anon_1.error_message, error_fingerprint=anon_1.error_fingerprint, completed_at=:p_values_completed_at, answered_at=:p_values_answered_at, lost_at=:p_values_lost_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], CAST([job_id] AS NVARCHAR(101)) AS [job_id], [error_type], [error_message], [result_json], CAST([error_fingerprint] AS NVARCHAR(33)) AS [error_fingerprint] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [job_id] NVARCHAR(MAX) '$[1]', [error_type] NVARCHAR(MAX) '$[2]', [error_message] NVARCHAR(MAX) '$[3]', [result_json] NVARCHAR(MAX) '$[4]', [error_fingerprint] NVARCHAR(MAX) '$[5]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.job_id = anon_1.job_id AND step_executions.status = 'dispatched' AND step_executions.answered_at IS NULL
GO

-- store.moves.move_steps
UPDATE step_executions SET status=:p_values_status, error_type=anon_1.error_type, error_message=anon_1.error_message, lost_at=:p_values_lost_at, retry_count=anon_1.retry_count, retry_after=anon_1.retry_after, throttled_since=anon_1.throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], CAST([job_id] AS NVARCHAR(101)) AS [job_id], [error_type], [error_message], [retry_after], [retry_count], [throttled_since] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [job_id] NVARCHAR(MAX) '$[1]', [error_type] NVARCHAR(MAX) '$[2]', [error_message] NVARCHAR(MAX) '$[3]', [retry_after] DATETIME2(6) '$[4]', [retry_count] BIGINT '$[5]', [throttled_since] DATETIME2(6) '$[6]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.job_id = anon_1.job_id AND step_executions.status = 'dispatched' AND step_executions.lost_at <= :g_at
GO

-- store.moves.move_steps
UPDATE step_executions SET status=:p_values_status, result_json=anon_1.result_json, error_type=anon_1.error_type, error_message=anon_1.error_message, error_fingerprint=anon_1.error_fingerprint, completed_at=:p_values_completed_at, lost_at=:p_values_lost_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], CAST([job_id] AS NVARCHAR(101)) AS [job_id], [error_type], [error_message], [result_json], CAST([error_fingerprint] AS NVARCHAR(33)) AS [error_fingerprint] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [job_id] NVARCHAR(MAX) '$[1]', [error_type] NVARCHAR(MAX) '$[2]', [error_message] NVARCHAR(MAX) '$[3]', [result_json] NVARCHAR(MAX) '$[4]', [error_fingerprint] NVARCHAR(MAX) '$[5]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.job_id = anon_1.job_id AND step_executions.status = 'dispatched' AND step_executions.lost_at <= :g_at
GO

-- store.moves.move_steps
UPDATE step_executions SET status=:p_values_status, error_type=anon_1.error_type, error_message=anon_1.error_message, error_fingerprint=anon_1.error_fingerprint, completed_at=:p_values_completed_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], [error_type], [error_message], CAST([error_fingerprint] AS NVARCHAR(33)) AS [error_fingerprint] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [error_type] NVARCHAR(MAX) '$[1]', [error_message] NVARCHAR(MAX) '$[2]', [error_fingerprint] NVARCHAR(MAX) '$[3]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.status = 'pending'
GO

-- store.moves.move_steps
UPDATE step_executions SET status=:p_values_status, error_type=anon_1.error_type, error_message=anon_1.error_message, error_fingerprint=anon_1.error_fingerprint, completed_at=:p_values_completed_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], [error_type], [error_message], CAST([error_fingerprint] AS NVARCHAR(33)) AS [error_fingerprint] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [error_type] NVARCHAR(MAX) '$[1]', [error_message] NVARCHAR(MAX) '$[2]', [error_fingerprint] NVARCHAR(MAX) '$[3]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.status = 'polling'
GO

-- store.moves.move_steps
UPDATE step_executions SET result_json=anon_1.result_json, answered_at=:p_values_answered_at, lost_at=:p_values_lost_at OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], CAST([job_id] AS NVARCHAR(101)) AS [job_id], [result_json] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [job_id] NVARCHAR(MAX) '$[1]', [result_json] NVARCHAR(MAX) '$[2]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.job_id = anon_1.job_id AND step_executions.status IN ('cancelled', 'failed', 'poll_timeout') AND step_executions.answered_at IS NULL
GO

-- store.moves.move_steps
UPDATE step_executions SET lost_at=:p_values_lost_at OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], CAST([job_id] AS NVARCHAR(101)) AS [job_id] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [job_id] NVARCHAR(MAX) '$[1]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.job_id = anon_1.job_id AND step_executions.status IN ('cancelled', 'failed', 'poll_timeout')
GO

-- store.moves.move_steps
UPDATE step_executions SET status=:p_values_status, lost_at=:p_values_lost_at OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], CAST([job_id] AS NVARCHAR(101)) AS [job_id] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [job_id] NVARCHAR(MAX) '$[1]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.job_id = anon_1.job_id AND step_executions.status = 'dispatched' AND step_executions.answered_at IS NULL
GO

-- store.moves.move_steps
UPDATE step_executions SET status=:p_values_status, lost_at=:p_values_lost_at, retry_after=:p_values_retry_after OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], CAST([job_id] AS NVARCHAR(101)) AS [job_id] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [job_id] NVARCHAR(MAX) '$[1]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.job_id = anon_1.job_id AND step_executions.status = 'dispatched' AND step_executions.answered_at IS NULL
GO

-- store.moves.move_steps
UPDATE step_executions SET status=:p_values_status, lost_at=:p_values_lost_at, poll_due_at=:p_values_poll_due_at OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id], CAST([job_id] AS NVARCHAR(101)) AS [job_id] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [job_id] NVARCHAR(MAX) '$[1]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.job_id = anon_1.job_id AND step_executions.status = 'dispatched' AND step_executions.answered_at IS NULL
GO

-- store.moves.move_steps
UPDATE step_executions SET lost_at=:p_values_lost_at OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index FROM step_executions, (SELECT [id] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]')) AS anon_1 WHERE step_executions.id = anon_1.id AND step_executions.status IN ('cancelled', 'failed', 'poll_timeout') AND step_executions.lost_at <= :g_at
GO

-- store.moves.reopen
UPDATE step_executions SET function_name=:p_values_function_name, params_json=:p_values_params_json, status=:p_values_status, job_id=:p_values_job_id, result_json=:p_values_result_json, error_type=:p_values_error_type, error_message=:p_values_error_message, error_fingerprint=:p_values_error_fingerprint, missing_outputs_json=:p_values_missing_outputs_json, completed_at=:p_values_completed_at, answered_at=:p_values_answered_at, poll_started_at=:p_values_poll_started_at, last_polled_at=:p_values_last_polled_at, poll_due_at=:p_values_poll_due_at, poll_count=:p_values_poll_count, retry_count=:p_values_retry_count, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index WHERE step_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'failed' AND step_executions.lost_at IS NULL
GO

-- store.moves.reopen
UPDATE step_executions SET function_name=:p_values_function_name, params_json=:p_values_params_json, status=:p_values_status, job_id=:p_values_job_id, result_json=:p_values_result_json, error_type=:p_values_error_type, error_message=:p_values_error_message, error_fingerprint=:p_values_error_fingerprint, missing_outputs_json=:p_values_missing_outputs_json, completed_at=:p_values_completed_at, answered_at=:p_values_answered_at, poll_started_at=:p_values_poll_started_at, last_polled_at=:p_values_last_polled_at, poll_due_at=:p_values_poll_due_at, poll_count=:p_values_poll_count, retry_count=:p_values_retry_count, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index WHERE step_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'cancelled' AND step_executions.lost_at IS NULL
GO

-- store.moves.reopen
UPDATE step_executions SET function_name=:p_values_function_name, params_json=:p_values_params_json, status=:p_values_status, job_id=:p_values_job_id, result_json=:p_values_result_json, error_type=:p_values_error_type, error_message=:p_values_error_message, error_fingerprint=:p_values_error_fingerprint, missing_outputs_json=:p_values_missing_outputs_json, completed_at=:p_values_completed_at, answered_at=:p_values_answered_at, poll_started_at=:p_values_poll_started_at, last_polled_at=:p_values_last_polled_at, poll_due_at=:p_values_poll_due_at, poll_count=:p_values_poll_count, retry_count=:p_values_retry_count, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index WHERE step_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'poll_timeout' AND step_executions.lost_at IS NULL
GO

-- store.moves.repeat
UPDATE step_executions SET function_name=:p_values_function_name, params_json=:p_values_params_json, status=:p_values_status, job_id=:p_values_job_id, result_json=:p_values_result_json, error_type=:p_values_error_type, error_message=:p_values_error_message, error_fingerprint=:p_values_error_fingerprint, missing_outputs_json=:p_values_missing_outputs_json, completed_at=:p_values_completed_at, answered_at=:p_values_answered_at, poll_started_at=:p_values_poll_started_at, last_polled_at=:p_values_last_polled_at, poll_due_at=:p_values_poll_due_at, poll_count=:p_values_poll_count, retry_count=:p_values_retry_count, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index WHERE step_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'failed' AND step_executions.lost_at IS NULL
GO

-- store.moves.repeat
UPDATE step_executions SET function_name=:p_values_function_name, params_json=:p_values_params_json, status=:p_values_status, job_id=:p_values_job_id, result_json=:p_values_result_json, error_type=:p_values_error_type, error_message=:p_values_error_message, error_fingerprint=:p_values_error_fingerprint, missing_outputs_json=:p_values_missing_outputs_json, completed_at=:p_values_completed_at, answered_at=:p_values_answered_at, poll_started_at=:p_values_poll_started_at, last_polled_at=:p_values_last_polled_at, poll_due_at=:p_values_poll_due_at, poll_count=:p_values_poll_count, retry_count=:p_values_retry_count, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index WHERE step_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'cancelled' AND step_executions.lost_at IS NULL
GO

-- store.moves.repeat
UPDATE step_executions SET function_name=:p_values_function_name, params_json=:p_values_params_json, status=:p_values_status, job_id=:p_values_job_id, result_json=:p_values_result_json, error_type=:p_values_error_type, error_message=:p_values_error_message, error_fingerprint=:p_values_error_fingerprint, missing_outputs_json=:p_values_missing_outputs_json, completed_at=:p_values_completed_at, answered_at=:p_values_answered_at, poll_started_at=:p_values_poll_started_at, last_polled_at=:p_values_last_polled_at, poll_due_at=:p_values_poll_due_at, poll_count=:p_values_poll_count, retry_count=:p_values_retry_count, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index WHERE step_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'poll_timeout' AND step_executions.lost_at IS NULL
GO

-- store.moves.repeat
UPDATE step_executions SET function_name=:p_values_function_name, params_json=:p_values_params_json, status=:p_values_status, job_id=:p_values_job_id, result_json=:p_values_result_json, error_type=:p_values_error_type, error_message=:p_values_error_message, error_fingerprint=:p_values_error_fingerprint, missing_outputs_json=:p_values_missing_outputs_json, completed_at=:p_values_completed_at, answered_at=:p_values_answered_at, poll_started_at=:p_values_poll_started_at, last_polled_at=:p_values_last_polled_at, poll_due_at=:p_values_poll_due_at, poll_count=:p_values_poll_count, retry_count=:p_values_retry_count, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_id, inserted.phase_execution_id, inserted.step_index WHERE step_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'succeeded' AND step_executions.lost_at IS NULL
GO

-- store.narrow_executions.batches_of_work
SELECT DISTINCT step_executions.batch_id 
FROM step_executions 
WHERE step_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.narrow_executions.init_states
SELECT init_executions.id, init_executions.status, init_executions.attempt, init_executions.job_id, init_executions.answered_at, init_executions.is_poll_step, init_executions.poll_interval_sec, init_executions.poll_timeout_sec, init_executions.poll_started_at, init_executions.poll_due_at, init_executions.retry_count, init_executions.max_retries, init_executions.retry_interval_sec, init_executions.retry_after, init_executions.throttled_since, init_executions.batch_id, init_executions.step_index, init_executions.lost_at, init_executions.timeout_sec, init_executions.runbook_version, init_executions.init_count 
FROM init_executions 
WHERE init_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.narrow_executions.init_states_of_batches
SELECT init_executions.id, init_executions.status, init_executions.attempt, init_executions.job_id, init_executions.answered_at, init_executions.is_poll_step, init_executions.poll_interval_sec, init_executions.poll_timeout_sec, init_executions.poll_started_at, init_executions.poll_due_at, init_executions.retry_count, init_executions.max_retries, init_executions.retry_interval_sec, init_executions.retry_after, init_executions.throttled_since, init_executions.batch_id, init_executions.step_index, init_executions.lost_at, init_executions.timeout_sec, init_executions.runbook_version, init_executions.init_count 
FROM init_executions 
WHERE init_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.narrow_executions.missing_outputs_of_members
SELECT step_executions.id, step_executions.batch_member_id, step_executions.epoch, step_executions.step_name, step_executions.missing_outputs_json 
FROM step_executions 
WHERE step_executions.batch_member_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_member_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.missing_outputs_json IS NOT NULL
GO

-- store.narrow_executions.next_steps_of_members
SELECT step_executions.id, step_executions.step_index, step_executions.status, step_executions.lost_at, step_executions.retry_after, step_executions.phase_execution_id, step_executions.batch_id, step_executions.attempt, step_executions.timeout_sec, step_executions.batch_member_id, step_executions.epoch 
FROM step_executions 
WHERE step_executions.batch_member_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_member_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND (step_executions.lost_at IS NOT NULL OR step_executions.status IN ('dispatched', 'pending', 'polling') AND (SELECT step_executions_1.id 
FROM step_executions AS step_executions_1 
WHERE step_executions_1.batch_member_id = step_executions.batch_member_id AND step_executions_1.epoch = step_executions.epoch AND step_executions_1.phase_execution_id = step_executions.phase_execution_id AND step_executions_1.step_index = step_executions.step_index - :step_index_1 AND step_executions_1.status IN ('dispatched', 'pending', 'polling')) IS NULL)
GO

-- store.narrow_executions.rollback_states
SELECT rollback_executions.id, rollback_executions.status, rollback_executions.attempt, rollback_executions.job_id, rollback_executions.answered_at, rollback_executions.is_poll_step, rollback_executions.poll_interval_sec, rollback_executions.poll_timeout_sec, rollback_executions.poll_started_at, rollback_executions.poll_due_at, rollback_executions.retry_count, rollback_executions.max_retries, rollback_executions.retry_interval_sec, rollback_executions.retry_after, rollback_executions.throttled_since, rollback_executions.batch_id, rollback_executions.step_index, rollback_executions.lost_at, rollback_executions.timeout_sec, rollback_executions.batch_member_id, rollback_executions.epoch, rollback_executions.runbook_version, rollback_executions.cause, rollback_executions.sequence_name, rollback_executions.sequence_key 
FROM rollback_executions 
WHERE rollback_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.narrow_executions.states_of
SELECT step_executions.id, step_executions.status, step_executions.attempt, step_executions.job_id, step_executions.answered_at, step_executions.is_poll_step, step_executions.poll_interval_sec, step_executions.poll_timeout_sec, step_executions.poll_started_at, step_executions.poll_due_at, step_executions.retry_count, step_executions.max_retries, step_executions.retry_interval_sec, step_executions.retry_after, step_executions.throttled_since, step_executions.batch_id, step_executions.step_index, step_executions.lost_at, step_executions.timeout_sec, step_executions.phase_execution_id, step_executions.batch_member_id, step_executions.epoch 
FROM step_executions 
WHERE step_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.narrow_executions.step_states
SELECT step_executions.id, step_executions.status, step_executions.attempt, step_executions.job_id, step_executions.answered_at, step_executions.is_poll_step, step_executions.poll_interval_sec, step_executions.poll_timeout_sec, step_executions.poll_started_at, step_executions.poll_due_at, step_executions.retry_count, step_executions.max_retries, step_executions.retry_interval_sec, step_executions.retry_after, step_executions.throttled_since, step_executions.batch_id, step_executions.step_index, step_executions.lost_at, step_executions.timeout_sec, step_executions.phase_execution_id, step_executions.batch_member_id, step_executions.epoch 
FROM step_executions 
WHERE step_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.narrow_executions.stored_calls
SELECT step_executions.id, step_executions.function_name, step_executions.params_json 
FROM step_executions 
WHERE step_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.narrow_executions.unfinished_rollbacks_of_inits
SELECT rollback_executions.id, rollback_executions.status, rollback_executions.attempt, rollback_executions.job_id, rollback_executions.answered_at, rollback_executions.is_poll_step, rollback_executions.poll_interval_sec, rollback_executions.poll_timeout_sec, rollback_executions.poll_started_at, rollback_executions.poll_due_at, rollback_executions.retry_count, rollback_executions.max_retries, rollback_executions.retry_interval_sec, rollback_executions.retry_after, rollback_executions.throttled_since, rollback_executions.batch_id, rollback_executions.step_index, rollback_executions.lost_at, rollback_executions.timeout_sec, rollback_executions.batch_member_id, rollback_executions.epoch, rollback_executions.runbook_version, rollback_executions.cause, rollback_executions.sequence_name, rollback_executions.sequence_key 
FROM rollback_executions 
WHERE rollback_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND rollback_executions.batch_member_id IS NULL AND (rollback_executions.status IN ('dispatched', 'pending', 'polling') OR rollback_executions.lost_at IS NOT NULL)
GO

-- store.narrow_executions.unfinished_rollbacks_of_members
SELECT rollback_executions.id, rollback_executions.status, rollback_executions.attempt, rollback_executions.job_id, rollback_executions.answered_at, rollback_executions.is_poll_step, rollback_executions.poll_interval_sec, rollback_executions.poll_timeout_sec, rollback_executions.poll_started_at, rollback_executions.poll_due_at, rollback_executions.retry_count, rollback_executions.max_retries, rollback_executions.retry_interval_sec, rollback_executions.retry_after, rollback_executions.throttled_since, rollback_executions.batch_id, rollback_executions.step_index, rollback_executions.lost_at, rollback_executions.timeout_sec, rollback_executions.batch_member_id, rollback_executions.epoch, rollback_executions.runbook_version, rollback_executions.cause, rollback_executions.sequence_name, rollback_executions.sequence_key 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_member_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND (rollback_executions.status IN ('dispatched', 'pending', 'polling') OR rollback_executions.lost_at IS NOT NULL)
GO

-- store.narrow_members.active_members
SELECT batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.status, batch_members.epoch, batch_members.first_phase_version, batch_members.first_phase_place, batch_members.caught_up_at, batch_members.remove_reason, batch_members.seen_off_at, batch_members.undone_at, batch_members.undo_version 
FROM batch_members 
WHERE batch_members.batch_id = :batch_id_1 AND batch_members.status = 'active'
GO

-- store.narrow_members.caught_up_members
SELECT TOP 7 batch_members.id 
FROM batch_members 
WHERE batch_members.batch_id = :p_batch_id AND batch_members.status = 'active' AND batch_members.id > :p_after AND batch_members.caught_up_at IS NOT NULL ORDER BY batch_members.id
GO

-- store.narrow_members.member_outputs
SELECT batch_members.id, batch_members.epoch, batch_members.worker_data_json 
FROM batch_members 
WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.narrow_members.members_in_full
SELECT batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.status, batch_members.epoch, batch_members.data_json, batch_members.worker_data_json, batch_members.joined_no, batch_members.is_pilot 
FROM batch_members 
WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.narrow_members.members_to_catch_up
SELECT TOP 7 batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.status, batch_members.epoch, batch_members.first_phase_version, batch_members.first_phase_place, batch_members.caught_up_at, batch_members.remove_reason, batch_members.seen_off_at, batch_members.undone_at, batch_members.undo_version 
FROM batch_members JOIN batches ON batches.id = batch_members.batch_id 
WHERE batches.status = 'active' AND NOT (EXISTS (SELECT * 
FROM gates AS standing 
WHERE standing.batch_id = batches.id AND standing.opened_at IS NULL AND standing.hold_key IS NOT NULL)) AND batch_members.status = 'active' AND batch_members.caught_up_at IS NULL AND batch_members.id > :p_after ORDER BY batch_members.id
GO

-- store.narrow_members.members_to_see_off
SELECT TOP 7 batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.status, batch_members.epoch, batch_members.first_phase_version, batch_members.first_phase_place, batch_members.caught_up_at, batch_members.remove_reason, batch_members.seen_off_at, batch_members.undone_at, batch_members.undo_version 
FROM batch_members 
WHERE batch_members.status = 'removed' AND batch_members.removed_at IS NOT NULL AND batch_members.seen_off_at IS NULL AND batch_members.remove_reason != 'moved' AND batch_members.removed_at <= :p_gone_since AND batch_members.id > :p_after ORDER BY batch_members.id
GO

-- store.narrow_members.members_with_keys
SELECT batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.status, batch_members.epoch, batch_members.first_phase_version, batch_members.first_phase_place, batch_members.caught_up_at, batch_members.remove_reason, batch_members.seen_off_at, batch_members.undone_at, batch_members.undo_version 
FROM batch_members 
WHERE batch_members.batch_id = :batch_id_1 AND batch_members.member_key_fold IN (SELECT anon_1.value 
FROM (SELECT CAST([value] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [value] FROM OPENJSON(:rows_1) WITH ([value] NVARCHAR(MAX) '$[0]')) AS anon_1)
GO

-- store.narrow_members.narrow_members
SELECT batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.status, batch_members.epoch, batch_members.first_phase_version, batch_members.first_phase_place, batch_members.caught_up_at, batch_members.remove_reason, batch_members.seen_off_at, batch_members.undone_at, batch_members.undo_version 
FROM batch_members 
WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.outbox.add_messages
INSERT INTO outbox (topic, message_id, message_type, body, properties_json, not_before, created_at, claim_token, claimed_until, tries) OUTPUT inserted.id, inserted.topic, inserted.message_id, inserted.message_type, inserted.body, inserted.properties_json, inserted.created_at, inserted.not_before, inserted.tries SELECT TOP 2147483647 anon_1.topic AS topic, anon_1.message_id AS message_id, anon_1.message_type AS message_type, anon_1.body AS body, anon_1.properties_json AS properties_json, anon_1.not_before AS not_before, :p_alike_created_at AS created_at, :p_alike_claim_token AS claim_token, :p_alike_claimed_until AS claimed_until, :p_alike_tries AS tries 
FROM (SELECT [position], CAST([topic] AS NVARCHAR(101)) AS [topic], CAST([message_id] AS NVARCHAR(201)) AS [message_id], CAST([message_type] AS NVARCHAR(51)) AS [message_type], [body], [properties_json], [not_before] FROM OPENJSON(:p_rows) WITH ([position] BIGINT '$[0]', [topic] NVARCHAR(MAX) '$[1]', [message_id] NVARCHAR(MAX) '$[2]', [message_type] NVARCHAR(MAX) '$[3]', [body] NVARCHAR(MAX) '$[4]', [properties_json] NVARCHAR(MAX) '$[5]', [not_before] DATETIME2(6) '$[6]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM outbox AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.topic = anon_1.topic AND there.message_id = anon_1.message_id)) ORDER BY anon_1.position
GO

-- store.outbox.claim_messages
WITH chosen AS 
(SELECT TOP 7 outbox.id AS id 
FROM outbox WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) 
WHERE outbox.claimed_until <= :p_at ORDER BY outbox.claimed_until, outbox.id)
 UPDATE outbox SET claimed_until=:p_until, claim_token=:p_token, tries=(outbox.tries + :tries_1) OUTPUT inserted.id, inserted.topic, inserted.message_id, inserted.message_type, inserted.body, inserted.properties_json, inserted.created_at, inserted.not_before, inserted.tries WHERE outbox.id IN (SELECT chosen.id 
FROM chosen) AND outbox.claimed_until <= :p_at
GO

-- store.outbox.delete_sent
DELETE FROM outbox OUTPUT deleted.id WHERE outbox.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND outbox.claim_token = :p_token
GO

-- store.outbox.waiting_count
SELECT count(*) AS count_1 
FROM outbox
GO

-- store.pace.keep_pace
INSERT INTO pace (name, speed, origin) SELECT TOP 2147483647 anon_1.name AS name, anon_1.speed AS speed, anon_1.origin AS origin 
FROM (SELECT CAST([name] AS NVARCHAR(101)) AS [name], [speed], [origin], [place] FROM OPENJSON(:p_rows) WITH ([name] NVARCHAR(MAX) '$[0]', [speed] BIGINT '$[1]', [origin] DATETIME2(6) '$[2]', [place] BIGINT '$[3]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM pace AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.name = anon_1.name)) ORDER BY anon_1.place
GO

-- store.pace.stored_pace
SELECT pace.name, pace.speed, pace.origin 
FROM pace
GO

-- store.people.enrolments_containing
SELECT TOP 7 batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.member_key_fold, batch_members.status, batch_members.data_hash, batch_members.failed_at, batch_members.remove_reason, batch_members.undone_at, batches.runbook_name, batches.status AS batch_status, batches.batch_start_time, batches.is_manual, batches.completed_at AS batch_completed_at 
FROM batch_members JOIN batches ON batches.id = batch_members.batch_id 
WHERE batch_members.member_key_fold LIKE :member_key_fold_1 ESCAPE '/' AND batch_members.id < :id_1 ORDER BY batch_members.id DESC
GO

-- store.people.enrolments_numbered
SELECT TOP 1 batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.member_key_fold, batch_members.status, batch_members.data_hash, batch_members.failed_at, batch_members.remove_reason, batch_members.undone_at, batches.runbook_name, batches.status AS batch_status, batches.batch_start_time, batches.is_manual, batches.completed_at AS batch_completed_at 
FROM batch_members JOIN batches ON batches.id = batch_members.batch_id 
WHERE batch_members.id = :id_1 AND batch_members.batch_id = :batch_id_1 ORDER BY batch_members.id DESC
GO

-- store.people.enrolments_of_key
SELECT TOP 7 batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.member_key_fold, batch_members.status, batch_members.data_hash, batch_members.failed_at, batch_members.remove_reason, batch_members.undone_at, batches.runbook_name, batches.status AS batch_status, batches.batch_start_time, batches.is_manual, batches.completed_at AS batch_completed_at 
FROM batch_members JOIN batches ON batches.id = batch_members.batch_id 
WHERE batch_members.member_key_fold = :member_key_fold_1 AND batch_members.batch_id = :batch_id_1 ORDER BY batch_members.id DESC
GO

-- store.people.enrolments_with_value
SELECT TOP 7 batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.member_key_fold, batch_members.status, batch_members.data_hash, batch_members.failed_at, batch_members.remove_reason, batch_members.undone_at, batches.runbook_name, batches.status AS batch_status, batches.batch_start_time, batches.is_manual, batches.completed_at AS batch_completed_at, batch_members.data_json 
FROM batch_members JOIN batches ON batches.id = batch_members.batch_id 
WHERE lower(batch_members.data_json) LIKE :lower_1 ESCAPE '/' AND batch_members.batch_id = :batch_id_1 ORDER BY batch_members.id DESC
GO

-- store.phases.batches_without_open_phases
SELECT TOP 7 batches.id 
FROM batches 
WHERE batches.status = 'active' AND NOT (EXISTS (SELECT * 
FROM phase_executions 
WHERE phase_executions.batch_id = batches.id AND phase_executions.status IN ('dispatched', 'pending'))) AND NOT (EXISTS (SELECT * 
FROM batch_members 
WHERE batch_members.batch_id = batches.id AND batch_members.status = 'active' AND batch_members.caught_up_at IS NULL)) AND NOT (EXISTS (SELECT * 
FROM batch_members 
WHERE batch_members.batch_id = batches.id AND batch_members.status = 'removed' AND batch_members.removed_at IS NOT NULL AND batch_members.seen_off_at IS NULL AND batch_members.remove_reason != 'moved')) AND NOT (EXISTS (SELECT * 
FROM rollback_executions 
WHERE rollback_executions.batch_id = batches.id AND rollback_executions.status IN ('dispatched', 'pending', 'polling'))) AND batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_wanted_id) WITH ([value] BIGINT '$[0]')) AS anon_1) ORDER BY batches.id
GO

-- store.phases.cancel_phases
UPDATE phase_executions SET status=:p_values_status, completed_at=:p_values_completed_at OUTPUT inserted.id, inserted.batch_id WHERE phase_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND phase_executions.status IN ('dispatched', 'pending')
GO

-- store.phases.dispatch_phases
UPDATE phase_executions SET status=:p_values_status, dispatched_at=:p_values_dispatched_at, dispatch_count=(phase_executions.dispatch_count + :dispatch_count_1), expanded_at=:p_values_expanded_at OUTPUT inserted.id, inserted.batch_id WHERE phase_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND phase_executions.status = 'pending'
GO

-- store.phases.due_phases
SELECT TOP 7 phase_executions.id, phase_executions.batch_id, phase_executions.runbook_version, phase_executions.phase_name, phase_executions.phase_index, phase_executions.offset_minutes, phase_executions.due_at, phase_executions.status, phase_executions.dispatched_at, phase_executions.dispatch_count, phase_executions.expanded_at, phase_executions.completed_at, phase_executions.member_count, phase_executions.pilot_done_at, phase_executions.woken_at, phase_executions.late_after 
FROM phase_executions JOIN batches ON batches.id = phase_executions.batch_id JOIN runbooks ON runbooks.id = batches.runbook_id JOIN runbook_ticks ON runbook_ticks.runbook_key = runbooks.name_key 
WHERE phase_executions.status = 'pending' AND phase_executions.due_at <= :p_at AND batches.status = 'active' AND NOT (EXISTS (SELECT * 
FROM gates AS gate 
WHERE gate.opened_at IS NULL AND (gate.shut_from <= :p_at OR gate.kind != 'freeze' OR gate.swept_at IS NOT NULL) AND (gate.shut_until IS NULL OR gate.shut_until > :p_at) AND gate.worker_id IS NULL AND gate.member_key_fold IS NULL AND gate.phase_execution_id IS NULL AND (gate.batch_id IS NULL OR gate.batch_id = batches.id) AND (gate.runbook_name IS NULL OR gate.runbook_name = batches.runbook_name))) AND batches.runbook_name = :p_wanted_runbook_name AND runbooks.is_active = 1 AND runbook_ticks.started_at >= phase_executions.due_at AND (phase_executions.due_at > :p_after_due_at OR phase_executions.due_at = :p_after_due_at AND (phase_executions.batch_id > :p_after_batch_id OR phase_executions.batch_id = :p_after_batch_id AND (phase_executions.phase_index > :p_after_phase_index OR phase_executions.phase_index = :p_after_phase_index AND phase_executions.id > :p_after_id))) ORDER BY phase_executions.due_at, phase_executions.batch_id, phase_executions.phase_index, phase_executions.id
GO

-- store.phases.insert_phases
INSERT INTO phase_executions (batch_id, runbook_version, phase_name, phase_index, offset_minutes, due_at, status, completed_at, late_after, dispatch_count) OUTPUT inserted.id, inserted.batch_id, inserted.runbook_version, inserted.phase_name, inserted.phase_index, inserted.offset_minutes, inserted.due_at, inserted.status, inserted.dispatched_at, inserted.dispatch_count, inserted.expanded_at, inserted.completed_at, inserted.member_count, inserted.pilot_done_at, inserted.woken_at, inserted.late_after SELECT TOP 2147483647 anon_1.batch_id AS batch_id, anon_1.runbook_version AS runbook_version, anon_1.phase_name AS phase_name, anon_1.phase_index AS phase_index, anon_1.offset_minutes AS offset_minutes, anon_1.due_at AS due_at, anon_1.status AS status, anon_1.completed_at AS completed_at, anon_1.late_after AS late_after, :p_shared_dispatch_count AS dispatch_count 
FROM (SELECT [batch_id], [runbook_version], CAST([phase_name] AS NVARCHAR(101)) AS [phase_name], [phase_index], [offset_minutes], [due_at], CAST([status] AS NVARCHAR(21)) AS [status], [completed_at], [late_after], [place] FROM OPENJSON(:p_rows) WITH ([batch_id] BIGINT '$[0]', [runbook_version] BIGINT '$[1]', [phase_name] NVARCHAR(MAX) '$[2]', [phase_index] BIGINT '$[3]', [offset_minutes] BIGINT '$[4]', [due_at] DATETIME2(6) '$[5]', [status] NVARCHAR(MAX) '$[6]', [completed_at] DATETIME2(6) '$[7]', [late_after] DATETIME2(6) '$[8]', [place] BIGINT '$[9]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM phase_executions AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.batch_id = anon_1.batch_id AND there.runbook_version = anon_1.runbook_version AND there.phase_index = anon_1.phase_index)) ORDER BY anon_1.place
GO

-- store.phases.move_phases
UPDATE phase_executions SET status=:p_values_status, completed_at=:p_values_completed_at OUTPUT inserted.id, inserted.batch_id WHERE phase_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND phase_executions.status = 'dispatched'
GO

-- store.phases.next_dues
SELECT phase_executions.batch_id, min(phase_executions.due_at) AS min_1 
FROM phase_executions 
WHERE phase_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND phase_executions.status = 'pending' AND phase_executions.due_at IS NOT NULL GROUP BY phase_executions.batch_id
GO

-- store.phases.note_expanded
UPDATE phase_executions SET expanded_at=:p_values_expanded_at OUTPUT inserted.id, inserted.batch_id WHERE phase_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND phase_executions.status = 'dispatched'
GO

-- store.phases.phases_by_id
SELECT phase_executions.id, phase_executions.batch_id, phase_executions.runbook_version, phase_executions.phase_name, phase_executions.phase_index, phase_executions.offset_minutes, phase_executions.due_at, phase_executions.status, phase_executions.dispatched_at, phase_executions.dispatch_count, phase_executions.expanded_at, phase_executions.completed_at, phase_executions.member_count, phase_executions.pilot_done_at, phase_executions.woken_at, phase_executions.late_after 
FROM phase_executions 
WHERE phase_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.phases.phases_of_batches
SELECT phase_executions.id, phase_executions.batch_id, phase_executions.runbook_version, phase_executions.phase_name, phase_executions.phase_index, phase_executions.offset_minutes, phase_executions.due_at, phase_executions.status, phase_executions.dispatched_at, phase_executions.dispatch_count, phase_executions.expanded_at, phase_executions.completed_at, phase_executions.member_count, phase_executions.pilot_done_at, phase_executions.woken_at, phase_executions.late_after 
FROM phase_executions 
WHERE phase_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.phases.phases_over
SELECT phase_executions.id, phase_executions.batch_id, phase_executions.runbook_version, phase_executions.phase_name, phase_executions.phase_index, phase_executions.offset_minutes, phase_executions.due_at, phase_executions.status, phase_executions.dispatched_at, phase_executions.dispatch_count, phase_executions.expanded_at, phase_executions.completed_at, phase_executions.member_count, phase_executions.pilot_done_at, phase_executions.woken_at, phase_executions.late_after 
FROM phase_executions 
WHERE phase_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.phases.phases_over
SELECT phase_executions.id, phase_executions.batch_id, phase_executions.runbook_version, phase_executions.phase_name, phase_executions.phase_index, phase_executions.offset_minutes, phase_executions.due_at, phase_executions.status, phase_executions.dispatched_at, phase_executions.dispatch_count, phase_executions.expanded_at, phase_executions.completed_at, phase_executions.member_count, phase_executions.pilot_done_at, phase_executions.woken_at, phase_executions.late_after 
FROM phase_executions 
WHERE phase_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.phases.phases_without_open_steps
SELECT TOP 7 phase_executions.id, phase_executions.batch_id, phase_executions.runbook_version, phase_executions.phase_name, phase_executions.phase_index, phase_executions.offset_minutes, phase_executions.due_at, phase_executions.status, phase_executions.dispatched_at, phase_executions.dispatch_count, phase_executions.expanded_at, phase_executions.completed_at, phase_executions.member_count, phase_executions.pilot_done_at, phase_executions.woken_at, phase_executions.late_after 
FROM phase_executions 
WHERE phase_executions.status = 'dispatched' AND phase_executions.expanded_at IS NOT NULL AND NOT (EXISTS (SELECT * 
FROM step_executions 
WHERE step_executions.phase_execution_id = phase_executions.id AND step_executions.status IN ('dispatched', 'pending', 'polling'))) AND phase_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_wanted_id) WITH ([value] BIGINT '$[0]')) AS anon_1) ORDER BY phase_executions.id
GO

-- store.phases.reopen_phases
UPDATE phase_executions SET status=:p_values_status, expanded_at=coalesce(phase_executions.expanded_at, :g_at), completed_at=:p_values_completed_at OUTPUT inserted.id, inserted.batch_id WHERE phase_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND phase_executions.status IN ('completed', 'failed', 'skipped')
GO

-- store.phases.reschedule_phases
UPDATE phase_executions SET due_at=anon_1.due_at, late_after=anon_1.late_after OUTPUT inserted.id, inserted.batch_id FROM phase_executions, (SELECT [id], [due_at], [late_after] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [due_at] DATETIME2(6) '$[1]', [late_after] DATETIME2(6) '$[2]')) AS anon_1 WHERE phase_executions.id = anon_1.id AND phase_executions.status = 'pending'
GO

-- store.phases.skip_phases
UPDATE phase_executions SET status=:p_values_status, completed_at=:p_values_completed_at OUTPUT inserted.id, inserted.batch_id WHERE phase_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND phase_executions.status = 'pending'
GO

-- store.phases.supersede_phases
UPDATE phase_executions SET status=:p_values_status, completed_at=:p_values_completed_at OUTPUT inserted.id, inserted.batch_id WHERE phase_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND phase_executions.status IN ('dispatched', 'pending')
GO

-- store.places.candidates
SELECT TOP 7 batch_members.id, step_executions.id AS step_id, batch_members.member_key, batch_members.is_pilot, batch_members.joined_no, step_executions.step_index, step_executions.worker_id 
FROM step_executions JOIN batch_members ON batch_members.id = step_executions.batch_member_id AND batch_members.epoch = step_executions.epoch 
WHERE step_executions.phase_execution_id = :p_phase_id AND step_executions.status = 'pending' AND step_executions.retry_after IS NULL AND batch_members.status = 'active' AND step_executions.id > :p_after AND (step_executions.step_index > 0 OR batch_members.is_pilot = 1) AND NOT (EXISTS (SELECT * 
FROM step_executions AS before 
WHERE before.batch_member_id = step_executions.batch_member_id AND before.epoch = step_executions.epoch AND before.phase_execution_id = step_executions.phase_execution_id AND before.step_index = step_executions.step_index - :step_index_1 AND before.status IN ('dispatched', 'pending', 'polling'))) AND NOT (EXISTS (SELECT * 
FROM step_executions AS first 
WHERE first.batch_member_id = step_executions.batch_member_id AND first.epoch = step_executions.epoch AND first.phase_execution_id = step_executions.phase_execution_id AND first.step_index = :step_index_2 AND first.holds_place = 1)) AND NOT (EXISTS (SELECT * 
FROM step_executions AS out 
WHERE out.batch_member_id = step_executions.batch_member_id AND out.lost_at IS NOT NULL)) AND NOT (EXISTS (SELECT * 
FROM step_executions AS busy 
WHERE busy.batch_member_id = step_executions.batch_member_id AND busy.status IN ('dispatched', 'pending', 'polling') AND busy.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_earlier) WITH ([value] BIGINT '$[0]')) AS anon_1))) AND NOT (EXISTS (SELECT * 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = step_executions.batch_member_id AND rollback_executions.lost_at IS NOT NULL)) AND NOT (EXISTS (SELECT * 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = step_executions.batch_member_id AND rollback_executions.status IN ('dispatched', 'pending', 'polling'))) ORDER BY step_executions.id
GO

-- store.places.first_steps_of
SELECT step_executions.id, step_executions.phase_execution_id, step_executions.batch_member_id, step_executions.epoch, step_executions.holds_place 
FROM step_executions 
WHERE step_executions.batch_member_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_member_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.phase_execution_id IN (SELECT anon_2.value 
FROM (SELECT [value] FROM OPENJSON(:p_phase_ids) WITH ([value] BIGINT '$[0]')) AS anon_2) AND step_executions.step_index = :step_index_1
GO

-- store.places.give_back_places
UPDATE step_executions SET holds_place=:holds_place WHERE step_executions.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_phase_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.holds_place = 1 AND NOT (EXISTS (SELECT * 
FROM step_executions AS other 
WHERE other.batch_member_id = step_executions.batch_member_id AND other.epoch = step_executions.epoch AND other.phase_execution_id = step_executions.phase_execution_id AND other.status IN ('dispatched', 'pending', 'polling')))
GO

-- store.places.places_taken
SELECT step_executions.phase_execution_id, count(*) AS count_1 
FROM step_executions 
WHERE step_executions.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_phase_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.holds_place = 1 GROUP BY step_executions.phase_execution_id
GO

-- store.places.take_places
UPDATE step_executions SET holds_place=:p_values_holds_place OUTPUT inserted.id WHERE step_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.progress.begun_by
SELECT anon_1.slot, count(*) AS count 
FROM (SELECT CASE WHEN (step_executions.dispatched_at <= :dispatched_at_1) THEN 0 ELSE 1 END AS slot 
FROM step_executions JOIN batch_members ON batch_members.id = step_executions.batch_member_id AND batch_members.epoch = step_executions.epoch 
WHERE step_executions.dispatched_at IS NOT NULL AND step_executions.phase_execution_id = :phase_execution_id_1 AND step_executions.step_index = :step_index_1) AS anon_1 GROUP BY anon_1.slot
GO

-- store.progress.step_tallies
SELECT step_executions.step_index, step_executions.step_name, step_executions.status, count(*) AS count 
FROM step_executions JOIN batch_members ON batch_members.id = step_executions.batch_member_id AND batch_members.epoch = step_executions.epoch 
WHERE step_executions.phase_execution_id = :phase_execution_id_1 GROUP BY step_executions.step_index, step_executions.step_name, step_executions.status ORDER BY step_executions.step_index, step_executions.step_name, step_executions.status
GO

-- store.progress.through_by
SELECT anon_1.slot, count(*) AS count 
FROM (SELECT CASE WHEN (step_executions.completed_at <= :completed_at_1) THEN 0 ELSE 1 END AS slot 
FROM step_executions JOIN batch_members ON batch_members.id = step_executions.batch_member_id AND batch_members.epoch = step_executions.epoch 
WHERE step_executions.completed_at IS NOT NULL AND step_executions.phase_execution_id = :phase_execution_id_1 AND step_executions.step_index = :step_index_1 AND step_executions.status = 'succeeded') AS anon_1 GROUP BY anon_1.slot
GO

-- store.pulse.beginnings_since
SELECT TOP 1000 phase_executions.due_at, batches.detected_at, phase_executions.dispatched_at 
FROM phase_executions JOIN batches ON batches.id = phase_executions.batch_id 
WHERE phase_executions.dispatched_at >= :p_since AND phase_executions.due_at IS NOT NULL AND phase_executions.status IN ('completed', 'dispatched', 'failed') AND batches.hold_count = :hold_count_1 ORDER BY phase_executions.dispatched_at DESC
GO

-- store.pulse.count_jobs_out
SELECT count(*) AS count_1 
FROM step_executions 
WHERE step_executions.lost_at IS NOT NULL
GO

-- store.pulse.endings_by_minute
SELECT anon_1.[begin], anon_1.worker_id, anon_1.status, (SELECT count(*) AS count_1 
FROM step_executions 
WHERE step_executions.worker_id = anon_1.worker_id AND step_executions.status = anon_1.status AND step_executions.completed_at >= anon_1.[begin] AND step_executions.completed_at < anon_1.until) AS count 
FROM (SELECT [begin], [until], CAST([worker_id] AS NVARCHAR(101)) AS [worker_id], CAST([status] AS NVARCHAR(21)) AS [status] FROM OPENJSON(:p_cells) WITH ([begin] DATETIME2(6) '$[0]', [until] DATETIME2(6) '$[1]', [worker_id] NVARCHAR(MAX) '$[2]', [status] NVARCHAR(MAX) '$[3]')) AS anon_1
GO

-- store.pulse.last_answers
SELECT anon_1.worker_id, max(anon_1.last_polled_at) AS at 
FROM (SELECT TOP 1000 step_executions.worker_id AS worker_id, step_executions.last_polled_at AS last_polled_at 
FROM step_executions 
WHERE step_executions.status = 'polling' ORDER BY step_executions.poll_due_at DESC, step_executions.id DESC) AS anon_1 GROUP BY anon_1.worker_id
GO

-- store.pulse.last_endings
SELECT anon_1.worker_id, (SELECT max(step_executions.completed_at) AS max_1 
FROM step_executions 
WHERE step_executions.worker_id = anon_1.worker_id AND step_executions.status = anon_1.status AND step_executions.completed_at IS NOT NULL) AS at 
FROM (SELECT CAST([worker_id] AS NVARCHAR(101)) AS [worker_id], CAST([status] AS NVARCHAR(21)) AS [status] FROM OPENJSON(:p_pairs) WITH ([worker_id] NVARCHAR(MAX) '$[0]', [status] NVARCHAR(MAX) '$[1]')) AS anon_1
GO

-- store.pulse.last_hellos
SELECT worker_functions.worker_id, max(worker_functions.announced_at) AS at 
FROM worker_functions GROUP BY worker_functions.worker_id ORDER BY worker_functions.worker_id
GO

-- store.pulse.oldest_jobs_out
SELECT anon_1.worker_id, count(*) AS jobs, min(anon_1.dispatched_at) AS oldest_at 
FROM (SELECT TOP 2000 step_executions.worker_id AS worker_id, step_executions.dispatched_at AS dispatched_at 
FROM step_executions 
WHERE step_executions.lost_at IS NOT NULL ORDER BY step_executions.lost_at, step_executions.id) AS anon_1 GROUP BY anon_1.worker_id ORDER BY anon_1.worker_id
GO

-- store.queue.bury_expired
SELECT TOP 7 bus_messages.id 
FROM bus_messages WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) 
WHERE bus_messages.expires_at <= :p_at AND bus_messages.visible_at <= :p_at AND bus_messages.id < coalesce((SELECT TOP 1 bus_messages.id 
FROM bus_messages 
WHERE bus_messages.enqueued_at > :p_published_by AND bus_messages.enqueued_at <= :p_at ORDER BY bus_messages.id), 9223372036854775807) ORDER BY bus_messages.id
GO

-- store.queue.bury_expired
DELETE FROM bus_messages OUTPUT deleted.id, deleted.topic, deleted.subscription, deleted.message_id, deleted.message_type, deleted.body, deleted.properties_json, deleted.delivery_count, deleted.enqueued_at WHERE bus_messages.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.queue.bury_expired
SELECT sysutcdatetime() AS sysutcdatetime_1
GO

-- store.queue.bury_expired
INSERT INTO dead_letters (topic, subscription, message_id, message_type, body, properties_json, reason, description, delivery_count, enqueued_at, dead_lettered_at, status) OUTPUT inserted.id, inserted.topic, inserted.subscription, inserted.message_id, inserted.message_type, inserted.body, inserted.properties_json, inserted.reason, inserted.description, inserted.delivery_count, inserted.enqueued_at, inserted.dead_lettered_at, inserted.status, inserted.resolved_at, inserted.resolved_by, inserted.resent_message_id SELECT TOP 2147483647 anon_1.topic AS topic, anon_1.subscription AS subscription, anon_1.message_id AS message_id, anon_1.message_type AS message_type, anon_1.body AS body, anon_1.properties_json AS properties_json, anon_1.reason AS reason, anon_1.description AS description, anon_1.delivery_count AS delivery_count, anon_1.enqueued_at AS enqueued_at, :p_shared_dead_lettered_at AS dead_lettered_at, :p_shared_status AS status 
FROM (SELECT CAST([topic] AS NVARCHAR(101)) AS [topic], CAST([subscription] AS NVARCHAR(101)) AS [subscription], CAST([message_id] AS NVARCHAR(201)) AS [message_id], CAST([message_type] AS NVARCHAR(51)) AS [message_type], [body], [properties_json], [reason], [description], [delivery_count], [enqueued_at], [place] FROM OPENJSON(:p_rows) WITH ([topic] NVARCHAR(MAX) '$[0]', [subscription] NVARCHAR(MAX) '$[1]', [message_id] NVARCHAR(MAX) '$[2]', [message_type] NVARCHAR(MAX) '$[3]', [body] NVARCHAR(MAX) '$[4]', [properties_json] NVARCHAR(MAX) '$[5]', [reason] NVARCHAR(MAX) '$[6]', [description] NVARCHAR(MAX) '$[7]', [delivery_count] BIGINT '$[8]', [enqueued_at] DATETIME2(6) '$[9]', [place] BIGINT '$[10]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM dead_letters AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.topic = anon_1.topic AND there.subscription = anon_1.subscription AND there.message_id = anon_1.message_id AND there.enqueued_at = anon_1.enqueued_at)) ORDER BY anon_1.place
GO

-- store.queue.bury_locked
DELETE FROM bus_messages OUTPUT deleted.id, deleted.topic, deleted.subscription, deleted.message_id, deleted.message_type, deleted.body, deleted.properties_json, deleted.delivery_count, deleted.enqueued_at WHERE bus_messages.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:rows_1) WITH ([value] BIGINT '$[0]')) AS anon_1) AND bus_messages.lock_token = :lock_token_1
GO

-- store.queue.bury_locked
SELECT sysutcdatetime() AS sysutcdatetime_1
GO

-- store.queue.bury_locked
INSERT INTO dead_letters (topic, subscription, message_id, message_type, body, properties_json, reason, description, delivery_count, enqueued_at, dead_lettered_at, status) OUTPUT inserted.id, inserted.topic, inserted.subscription, inserted.message_id, inserted.message_type, inserted.body, inserted.properties_json, inserted.reason, inserted.description, inserted.delivery_count, inserted.enqueued_at, inserted.dead_lettered_at, inserted.status, inserted.resolved_at, inserted.resolved_by, inserted.resent_message_id SELECT TOP 2147483647 anon_1.topic AS topic, anon_1.subscription AS subscription, anon_1.message_id AS message_id, anon_1.message_type AS message_type, anon_1.body AS body, anon_1.properties_json AS properties_json, anon_1.reason AS reason, anon_1.description AS description, anon_1.delivery_count AS delivery_count, anon_1.enqueued_at AS enqueued_at, :p_shared_dead_lettered_at AS dead_lettered_at, :p_shared_status AS status 
FROM (SELECT CAST([topic] AS NVARCHAR(101)) AS [topic], CAST([subscription] AS NVARCHAR(101)) AS [subscription], CAST([message_id] AS NVARCHAR(201)) AS [message_id], CAST([message_type] AS NVARCHAR(51)) AS [message_type], [body], [properties_json], [reason], [description], [delivery_count], [enqueued_at], [place] FROM OPENJSON(:p_rows) WITH ([topic] NVARCHAR(MAX) '$[0]', [subscription] NVARCHAR(MAX) '$[1]', [message_id] NVARCHAR(MAX) '$[2]', [message_type] NVARCHAR(MAX) '$[3]', [body] NVARCHAR(MAX) '$[4]', [properties_json] NVARCHAR(MAX) '$[5]', [reason] NVARCHAR(MAX) '$[6]', [description] NVARCHAR(MAX) '$[7]', [delivery_count] BIGINT '$[8]', [enqueued_at] DATETIME2(6) '$[9]', [place] BIGINT '$[10]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM dead_letters AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.topic = anon_1.topic AND there.subscription = anon_1.subscription AND there.message_id = anon_1.message_id AND there.enqueued_at = anon_1.enqueued_at)) ORDER BY anon_1.place
GO

-- store.queue.bury_undeliverable
SELECT TOP 7 bus_messages.id 
FROM bus_messages WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) 
WHERE bus_messages.delivery_count >= 10 AND bus_messages.visible_at <= :p_at ORDER BY bus_messages.id
GO

-- store.queue.bury_undeliverable
DELETE FROM bus_messages OUTPUT deleted.id, deleted.topic, deleted.subscription, deleted.message_id, deleted.message_type, deleted.body, deleted.properties_json, deleted.delivery_count, deleted.enqueued_at WHERE bus_messages.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.queue.bury_undeliverable
SELECT sysutcdatetime() AS sysutcdatetime_1
GO

-- store.queue.bury_undeliverable
INSERT INTO dead_letters (topic, subscription, message_id, message_type, body, properties_json, reason, description, delivery_count, enqueued_at, dead_lettered_at, status) OUTPUT inserted.id, inserted.topic, inserted.subscription, inserted.message_id, inserted.message_type, inserted.body, inserted.properties_json, inserted.reason, inserted.description, inserted.delivery_count, inserted.enqueued_at, inserted.dead_lettered_at, inserted.status, inserted.resolved_at, inserted.resolved_by, inserted.resent_message_id SELECT TOP 2147483647 anon_1.topic AS topic, anon_1.subscription AS subscription, anon_1.message_id AS message_id, anon_1.message_type AS message_type, anon_1.body AS body, anon_1.properties_json AS properties_json, anon_1.reason AS reason, anon_1.description AS description, anon_1.delivery_count AS delivery_count, anon_1.enqueued_at AS enqueued_at, :p_shared_dead_lettered_at AS dead_lettered_at, :p_shared_status AS status 
FROM (SELECT CAST([topic] AS NVARCHAR(101)) AS [topic], CAST([subscription] AS NVARCHAR(101)) AS [subscription], CAST([message_id] AS NVARCHAR(201)) AS [message_id], CAST([message_type] AS NVARCHAR(51)) AS [message_type], [body], [properties_json], [reason], [description], [delivery_count], [enqueued_at], [place] FROM OPENJSON(:p_rows) WITH ([topic] NVARCHAR(MAX) '$[0]', [subscription] NVARCHAR(MAX) '$[1]', [message_id] NVARCHAR(MAX) '$[2]', [message_type] NVARCHAR(MAX) '$[3]', [body] NVARCHAR(MAX) '$[4]', [properties_json] NVARCHAR(MAX) '$[5]', [reason] NVARCHAR(MAX) '$[6]', [description] NVARCHAR(MAX) '$[7]', [delivery_count] BIGINT '$[8]', [enqueued_at] DATETIME2(6) '$[9]', [place] BIGINT '$[10]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM dead_letters AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.topic = anon_1.topic AND there.subscription = anon_1.subscription AND there.message_id = anon_1.message_id AND there.enqueued_at = anon_1.enqueued_at)) ORDER BY anon_1.place
GO

-- store.queue.enqueue
INSERT INTO bus_recent_ids (topic, message_id, published_at, publication) SELECT :p_topic AS topic, anon_1.value AS message_id, :p_at AS published_at, :p_publication AS publication 
FROM (SELECT CAST([value] AS NVARCHAR(201)) AS [value] FROM OPENJSON(:p_message_ids) WITH ([value] NVARCHAR(MAX) '$[0]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM bus_recent_ids AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.topic = :p_topic AND there.message_id = anon_1.value))
GO

-- store.queue.enqueue
DELETE FROM bus_recent_ids WHERE bus_recent_ids.topic = :p_topic AND bus_recent_ids.message_id IN (SELECT anon_1.value 
FROM (SELECT CAST([value] AS NVARCHAR(201)) AS [value] FROM OPENJSON(:p_message_ids) WITH ([value] NVARCHAR(MAX) '$[0]')) AS anon_1) AND bus_recent_ids.published_at < :p_before
GO

-- store.queue.enqueue
INSERT INTO bus_recent_ids (topic, message_id, published_at, publication) SELECT :p_topic AS topic, anon_1.value AS message_id, :p_at AS published_at, :p_publication AS publication 
FROM (SELECT CAST([value] AS NVARCHAR(201)) AS [value] FROM OPENJSON(:p_message_ids) WITH ([value] NVARCHAR(MAX) '$[0]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM bus_recent_ids AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.topic = :p_topic AND there.message_id = anon_1.value))
GO

-- store.queue.enqueue
SELECT bus_recent_ids.message_id 
FROM bus_recent_ids 
WHERE bus_recent_ids.topic = :p_topic AND bus_recent_ids.message_id IN (SELECT anon_1.value 
FROM (SELECT CAST([value] AS NVARCHAR(201)) AS [value] FROM OPENJSON(:p_message_ids) WITH ([value] NVARCHAR(MAX) '$[0]')) AS anon_1) AND bus_recent_ids.publication = :p_publication
GO

-- store.queue.extend_locks
UPDATE bus_messages SET visible_at=:p_until OUTPUT inserted.id WHERE bus_messages.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND bus_messages.lock_token = :p_token
GO

-- store.queue.forget_ids
DELETE FROM bus_recent_ids WHERE bus_recent_ids.id < coalesce((SELECT TOP 1 bus_recent_ids.id 
FROM bus_recent_ids 
WHERE bus_recent_ids.published_at >= :p_before AND bus_recent_ids.published_at <= :p_at ORDER BY bus_recent_ids.id), 9223372036854775807) AND bus_recent_ids.published_at < :p_before
GO

-- store.queue.has_due
SELECT TOP 1 bus_messages.id 
FROM bus_messages 
WHERE bus_messages.topic = :p_topic AND bus_messages.subscription = :p_subscription AND bus_messages.visible_at <= :p_at AND bus_messages.expires_at > :p_at AND bus_messages.delivery_count < :delivery_count_1
GO

-- store.queue.lock_due
SELECT TOP 7 bus_messages.properties_json, bus_messages.id AS handle, bus_messages.message_id, bus_messages.message_type, bus_messages.body, bus_messages.delivery_count + :delivery_count_1 AS delivery_count 
FROM bus_messages WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK) 
WHERE bus_messages.topic = :p_topic AND bus_messages.subscription = :p_subscription AND bus_messages.visible_at <= :p_at AND bus_messages.expires_at > :p_at AND bus_messages.delivery_count < :delivery_count_2 ORDER BY bus_messages.visible_at, bus_messages.id
GO

-- store.queue.lock_due
UPDATE bus_messages SET visible_at=:p_until, lock_token=:p_token, delivery_count=(bus_messages.delivery_count + :delivery_count_1) WHERE bus_messages.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.queue.queue_lengths
SELECT bus_messages.topic, bus_messages.subscription, count(*) AS count_1 
FROM bus_messages GROUP BY bus_messages.topic, bus_messages.subscription
GO

-- store.queue.remove_locked
DELETE FROM bus_messages WHERE bus_messages.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND bus_messages.lock_token = :p_token
GO

-- store.queue.remove_untouched
DELETE FROM bus_messages OUTPUT deleted.message_id WHERE bus_messages.topic = :p_topic AND bus_messages.message_id IN (SELECT anon_1.value 
FROM (SELECT CAST([value] AS NVARCHAR(201)) AS [value] FROM OPENJSON(:p_message_ids) WITH ([value] NVARCHAR(MAX) '$[0]')) AS anon_1) AND bus_messages.delivery_count = :delivery_count_1
GO

-- store.queue.undo_receipt
UPDATE bus_messages SET visible_at=:p_at, lock_token=:lock_token, delivery_count=(bus_messages.delivery_count - :delivery_count_1) WHERE bus_messages.topic = :p_topic AND bus_messages.subscription = :p_subscription AND bus_messages.lock_token = :p_token
GO

-- store.queue.unlock
UPDATE bus_messages SET visible_at=:p_at, lock_token=:lock_token WHERE bus_messages.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND bus_messages.lock_token = :p_token
GO

-- store.queue.unlock_all
UPDATE bus_messages SET visible_at=:visible_at, lock_token=:lock_token WHERE bus_messages.lock_token IS NOT NULL AND bus_messages.visible_at > :visible_at_1
GO

-- store.reporting.batches_of_report
SELECT batches.id, batches.runbook_id, batches.runbook_name, batches.batch_start_time, batches.status, batches.is_manual, batches.created_by, batches.current_phase, batches.detected_at, batches.init_dispatched_at, batches.init_count, batches.completed_at, batches.reopened_at, batches.hold_count, batches.removals_approved_at, hold.shut_from AS held_at, hold.kind AS gate_kind, hold.reason AS hold_reason, hold.hold_key, hold.shown_json AS hold_json, hold.approved_by AS approved_hold_by, hold.approved_at AS approved_hold_at 
FROM batches LEFT OUTER JOIN gates AS hold ON hold.batch_id = batches.id AND hold.opened_at IS NULL AND hold.hold_key IS NOT NULL 
WHERE batches.id = :id_1 AND batches.runbook_name = :runbook_name_1
GO

-- store.reporting.beginners
SELECT batch_members.batch_id, batch_members.first_phase_version, batch_members.first_phase_place, count(*) AS members 
FROM batch_members 
WHERE batch_members.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batch_members.first_phase_place > 0 AND batch_members.status IN ('active', 'failed') GROUP BY batch_members.batch_id, batch_members.first_phase_version, batch_members.first_phase_place
GO

-- store.reporting.count_report
SELECT count(*) AS count_1 
FROM batch_members JOIN batches AS owner ON owner.id = batch_members.batch_id 
WHERE owner.id = :id_1 AND owner.runbook_name = :runbook_name_1 AND batch_members.batch_id = :batch_id_1 AND batch_members.status = 'active' AND 'waiting' = CASE WHEN ((SELECT TOP 1 1 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND rollback_executions.status IN ('dispatched', 'pending', 'polling')) IS NOT NULL OR batch_members.status = 'removed' AND batch_members.removed_at IS NOT NULL AND batch_members.seen_off_at IS NULL AND (batch_members.remove_reason NOT IN ('excluded by a person', 'moved', 'the source no longer returned it, and its batch had not begun'))) THEN 'undoing' WHEN (batch_members.status = 'removed' AND batch_members.undone_at IS NOT NULL) THEN 'undone' WHEN (batch_members.status = 'removed') THEN 'left' WHEN (batch_members.status = 'failed') THEN 'failed' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'cancelled') IS NOT NULL) THEN 'stopped' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM step_executions 
WHERE step_executions.batch_member_id = batch_members.id AND step_executions.status IN ('dispatched', 'pending', 'polling') AND step_executions.epoch = batch_members.epoch) IS NOT NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'active') IS NOT NULL AND batch_members.caught_up_at IS NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'active') IS NOT NULL AND (SELECT TOP 1 1 
FROM phase_executions 
WHERE phase_executions.batch_id = batch_members.batch_id AND phase_executions.status = 'dispatched' AND phase_executions.expanded_at IS NULL) IS NOT NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM phase_executions 
WHERE phase_executions.batch_id = batch_members.batch_id AND phase_executions.status = 'pending') IS NOT NULL) THEN 'waiting' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status IN ('detected', 'init_dispatched')) IS NOT NULL) THEN 'waiting' WHEN (batch_members.status = 'active') THEN 'done' END AND batch_members.member_key_fold LIKE :member_key_fold_1 ESCAPE '/' AND (EXISTS (SELECT 1 
FROM step_executions AS failed 
WHERE failed.id = (SELECT max(tried.id) AS max_1 
FROM step_executions AS tried 
WHERE tried.batch_member_id = batch_members.id AND tried.epoch = batch_members.epoch AND (tried.attempt > 0 OR tried.status IN ('failed', 'poll_timeout'))) AND failed.status IN ('failed', 'poll_timeout') AND lower(failed.error_message) LIKE :lower_1 ESCAPE '/')) AND (EXISTS (SELECT 1 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND rollback_executions.epoch = batch_members.epoch AND rollback_executions.status IN ('failed', 'poll_timeout')))
GO

-- store.reporting.failed_people
SELECT batches.runbook_name, phase_executions.phase_name, step_executions.step_name, step_executions.error_type, min(substring(coalesce(step_executions.error_message, ''), 1, 200)) AS error, count(*) AS members, min(anon_1.member_key) AS example_key 
FROM (SELECT batch_members.member_key AS member_key, batch_members.batch_id AS batch_id, (SELECT max(tried.id) AS max_1 
FROM step_executions AS tried 
WHERE tried.batch_member_id = batch_members.id AND tried.epoch = batch_members.epoch AND (tried.attempt > 0 OR tried.status IN ('failed', 'poll_timeout'))) AS last_step_id 
FROM batch_members 
WHERE batch_members.batch_id IN (SELECT anon_2.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_2) AND batch_members.status = 'failed') AS anon_1 JOIN batches ON batches.id = anon_1.batch_id JOIN step_executions ON step_executions.id = anon_1.last_step_id JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id GROUP BY batches.runbook_name, phase_executions.phase_name, step_executions.step_name, step_executions.error_type, coalesce(step_executions.error_fingerprint, substring(coalesce(step_executions.error_message, ''), 1, 200)) ORDER BY count(*) DESC, min(anon_1.member_key)
GO

-- store.reporting.phase_tallies
SELECT anon_1.phase_execution_id, count(*) AS members, sum(anon_1.completed) AS completed, sum(anon_1.failed) AS failed 
FROM (SELECT step_executions.phase_execution_id AS phase_execution_id, min(CASE WHEN (step_executions.status = 'succeeded') THEN :param_1 ELSE :param_2 END) AS completed, max(CASE WHEN (step_executions.status IN ('failed', 'poll_timeout')) THEN :param_3 ELSE :param_4 END) AS failed 
FROM step_executions JOIN batch_members ON batch_members.id = step_executions.batch_member_id 
WHERE step_executions.phase_execution_id IN (SELECT anon_2.value 
FROM (SELECT [value] FROM OPENJSON(:p_phase_ids) WITH ([value] BIGINT '$[0]')) AS anon_2) AND step_executions.epoch = batch_members.epoch AND batch_members.status IN ('active', 'failed') GROUP BY step_executions.phase_execution_id, step_executions.batch_member_id) AS anon_1 GROUP BY anon_1.phase_execution_id
GO

-- store.reporting.report_page
SELECT TOP 7 batch_members.id, batch_members.batch_id, batch_members.member_key, batch_members.data_json, batch_members.added_at, batch_members.failed_at, batch_members.removed_at, owner.runbook_name, owner.batch_start_time, CASE WHEN ((SELECT TOP 1 1 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND rollback_executions.status IN ('dispatched', 'pending', 'polling')) IS NOT NULL OR batch_members.status = 'removed' AND batch_members.removed_at IS NOT NULL AND batch_members.seen_off_at IS NULL AND (batch_members.remove_reason NOT IN ('excluded by a person', 'moved', 'the source no longer returned it, and its batch had not begun'))) THEN 'undoing' WHEN (batch_members.status = 'removed' AND batch_members.undone_at IS NOT NULL) THEN 'undone' WHEN (batch_members.status = 'removed') THEN 'left' WHEN (batch_members.status = 'failed') THEN 'failed' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'cancelled') IS NOT NULL) THEN 'stopped' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM step_executions 
WHERE step_executions.batch_member_id = batch_members.id AND step_executions.status IN ('dispatched', 'pending', 'polling') AND step_executions.epoch = batch_members.epoch) IS NOT NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'active') IS NOT NULL AND batch_members.caught_up_at IS NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'active') IS NOT NULL AND (SELECT TOP 1 1 
FROM phase_executions 
WHERE phase_executions.batch_id = batch_members.batch_id AND phase_executions.status = 'dispatched' AND phase_executions.expanded_at IS NULL) IS NOT NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM phase_executions 
WHERE phase_executions.batch_id = batch_members.batch_id AND phase_executions.status = 'pending') IS NOT NULL) THEN 'waiting' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status IN ('detected', 'init_dispatched')) IS NOT NULL) THEN 'waiting' WHEN (batch_members.status = 'active') THEN 'done' END AS state, (SELECT max(tried.id) AS max_1 
FROM step_executions AS tried 
WHERE tried.batch_member_id = batch_members.id AND tried.epoch = batch_members.epoch AND (tried.attempt > 0 OR tried.status IN ('failed', 'poll_timeout'))) AS last_step_id 
FROM batch_members JOIN batches AS owner ON owner.id = batch_members.batch_id 
WHERE owner.id = :id_1 AND owner.runbook_name = :runbook_name_1 AND batch_members.batch_id = :batch_id_1 AND batch_members.status = 'active' AND 'waiting' = CASE WHEN ((SELECT TOP 1 1 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND rollback_executions.status IN ('dispatched', 'pending', 'polling')) IS NOT NULL OR batch_members.status = 'removed' AND batch_members.removed_at IS NOT NULL AND batch_members.seen_off_at IS NULL AND (batch_members.remove_reason NOT IN ('excluded by a person', 'moved', 'the source no longer returned it, and its batch had not begun'))) THEN 'undoing' WHEN (batch_members.status = 'removed' AND batch_members.undone_at IS NOT NULL) THEN 'undone' WHEN (batch_members.status = 'removed') THEN 'left' WHEN (batch_members.status = 'failed') THEN 'failed' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'cancelled') IS NOT NULL) THEN 'stopped' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM step_executions 
WHERE step_executions.batch_member_id = batch_members.id AND step_executions.status IN ('dispatched', 'pending', 'polling') AND step_executions.epoch = batch_members.epoch) IS NOT NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'active') IS NOT NULL AND batch_members.caught_up_at IS NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'active') IS NOT NULL AND (SELECT TOP 1 1 
FROM phase_executions 
WHERE phase_executions.batch_id = batch_members.batch_id AND phase_executions.status = 'dispatched' AND phase_executions.expanded_at IS NULL) IS NOT NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM phase_executions 
WHERE phase_executions.batch_id = batch_members.batch_id AND phase_executions.status = 'pending') IS NOT NULL) THEN 'waiting' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status IN ('detected', 'init_dispatched')) IS NOT NULL) THEN 'waiting' WHEN (batch_members.status = 'active') THEN 'done' END AND batch_members.member_key_fold LIKE :member_key_fold_1 ESCAPE '/' AND (EXISTS (SELECT 1 
FROM step_executions AS failed 
WHERE failed.id = (SELECT max(tried.id) AS max_1 
FROM step_executions AS tried 
WHERE tried.batch_member_id = batch_members.id AND tried.epoch = batch_members.epoch AND (tried.attempt > 0 OR tried.status IN ('failed', 'poll_timeout'))) AND failed.status IN ('failed', 'poll_timeout') AND lower(failed.error_message) LIKE :lower_1 ESCAPE '/')) AND (EXISTS (SELECT 1 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND rollback_executions.epoch = batch_members.epoch AND rollback_executions.status IN ('failed', 'poll_timeout'))) AND batch_members.batch_id >= (SELECT last.batch_id 
FROM batch_members AS last 
WHERE last.id = :id_2) AND (batch_members.batch_id > (SELECT last.batch_id 
FROM batch_members AS last 
WHERE last.id = :id_2) OR batch_members.id > :id_3) ORDER BY batch_members.batch_id, batch_members.id
GO

-- store.reporting.tried_steps
SELECT step_executions.id, step_executions.step_name, step_executions.status, step_executions.attempt, step_executions.error_type, step_executions.error_message, step_executions.dispatched_at, step_executions.completed_at, phase_executions.phase_name 
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id 
WHERE step_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.rollbacks.failed_rollbacks_of_batches
SELECT rollback_executions.id, rollback_executions.batch_id, rollback_executions.step_name, rollback_executions.step_index, rollback_executions.worker_id, rollback_executions.function_name, rollback_executions.params_json, rollback_executions.status, rollback_executions.attempt, rollback_executions.job_id, rollback_executions.result_json, rollback_executions.error_type, rollback_executions.error_message, rollback_executions.missing_outputs_json, rollback_executions.dispatched_at, rollback_executions.completed_at, rollback_executions.timeout_sec, rollback_executions.answered_at, rollback_executions.lost_at, rollback_executions.is_poll_step, rollback_executions.poll_interval_sec, rollback_executions.poll_timeout_sec, rollback_executions.poll_started_at, rollback_executions.last_polled_at, rollback_executions.poll_due_at, rollback_executions.poll_count, rollback_executions.on_failure, rollback_executions.retry_count, rollback_executions.max_retries, rollback_executions.retry_interval_sec, rollback_executions.retry_after, rollback_executions.throttled_since, rollback_executions.created_at, rollback_executions.batch_member_id, rollback_executions.epoch, rollback_executions.runbook_version, rollback_executions.cause, rollback_executions.step_execution_id, rollback_executions.init_execution_id, rollback_executions.sequence_name, rollback_executions.sequence_key 
FROM rollback_executions 
WHERE rollback_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:rows_1) WITH ([value] BIGINT '$[0]')) AS anon_1) AND rollback_executions.status IN ('failed', 'poll_timeout')
GO

-- store.rollbacks.insert_rollbacks
INSERT INTO rollback_executions (step_name, step_index, worker_id, timeout_sec, is_poll_step, poll_interval_sec, poll_timeout_sec, on_failure, max_retries, retry_interval_sec, batch_id, runbook_version, cause, sequence_name, sequence_key, batch_member_id, epoch, step_execution_id, init_execution_id, status, attempt, poll_count, retry_count, created_at) OUTPUT inserted.id, inserted.batch_id, inserted.step_name, inserted.step_index, inserted.worker_id, inserted.function_name, inserted.params_json, inserted.status, inserted.attempt, inserted.job_id, inserted.result_json, inserted.error_type, inserted.error_message, inserted.missing_outputs_json, inserted.dispatched_at, inserted.completed_at, inserted.timeout_sec, inserted.answered_at, inserted.lost_at, inserted.is_poll_step, inserted.poll_interval_sec, inserted.poll_timeout_sec, inserted.poll_started_at, inserted.last_polled_at, inserted.poll_due_at, inserted.poll_count, inserted.on_failure, inserted.retry_count, inserted.max_retries, inserted.retry_interval_sec, inserted.retry_after, inserted.throttled_since, inserted.created_at, inserted.batch_member_id, inserted.epoch, inserted.runbook_version, inserted.cause, inserted.step_execution_id, inserted.init_execution_id, inserted.sequence_name, inserted.sequence_key SELECT TOP 2147483647 anon_1.step_name AS step_name, anon_1.step_index AS step_index, anon_1.worker_id AS worker_id, anon_1.timeout_sec AS timeout_sec, anon_1.is_poll_step AS is_poll_step, anon_1.poll_interval_sec AS poll_interval_sec, anon_1.poll_timeout_sec AS poll_timeout_sec, anon_1.on_failure AS on_failure, anon_1.max_retries AS max_retries, anon_1.retry_interval_sec AS retry_interval_sec, anon_1.batch_id AS batch_id, anon_1.runbook_version AS runbook_version, anon_1.cause AS cause, anon_1.sequence_name AS sequence_name, anon_1.sequence_key AS sequence_key, anon_1.batch_member_id AS batch_member_id, anon_1.epoch AS epoch, anon_1.step_execution_id AS step_execution_id, anon_1.init_execution_id AS init_execution_id, :p_shared_status AS status, :p_shared_attempt AS attempt, :p_shared_poll_count AS poll_count, :p_shared_retry_count AS retry_count, :p_shared_created_at AS created_at 
FROM (SELECT CAST([step_name] AS NVARCHAR(101)) AS [step_name], [step_index], CAST([worker_id] AS NVARCHAR(101)) AS [worker_id], [timeout_sec], [is_poll_step], [poll_interval_sec], [poll_timeout_sec], CAST([on_failure] AS NVARCHAR(101)) AS [on_failure], [max_retries], [retry_interval_sec], [batch_id], [runbook_version], CAST([cause] AS NVARCHAR(21)) AS [cause], CAST([sequence_name] AS NVARCHAR(101)) AS [sequence_name], CAST([sequence_key] AS NVARCHAR(101)) AS [sequence_key], [batch_member_id], [epoch], [step_execution_id], [init_execution_id], [place] FROM OPENJSON(:p_rows) WITH ([step_name] NVARCHAR(MAX) '$[0]', [step_index] BIGINT '$[1]', [worker_id] NVARCHAR(MAX) '$[2]', [timeout_sec] BIGINT '$[3]', [is_poll_step] BIT '$[4]', [poll_interval_sec] BIGINT '$[5]', [poll_timeout_sec] BIGINT '$[6]', [on_failure] NVARCHAR(MAX) '$[7]', [max_retries] BIGINT '$[8]', [retry_interval_sec] BIGINT '$[9]', [batch_id] BIGINT '$[10]', [runbook_version] BIGINT '$[11]', [cause] NVARCHAR(MAX) '$[12]', [sequence_name] NVARCHAR(MAX) '$[13]', [sequence_key] NVARCHAR(MAX) '$[14]', [batch_member_id] BIGINT '$[15]', [epoch] BIGINT '$[16]', [step_execution_id] BIGINT '$[17]', [init_execution_id] BIGINT '$[18]', [place] BIGINT '$[19]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM rollback_executions AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.sequence_key = anon_1.sequence_key AND there.step_index = anon_1.step_index)) ORDER BY anon_1.place
GO

-- store.rollbacks.open_rollbacks_of_batches
SELECT rollback_executions.id, rollback_executions.batch_id, rollback_executions.step_name, rollback_executions.step_index, rollback_executions.worker_id, rollback_executions.function_name, rollback_executions.params_json, rollback_executions.status, rollback_executions.attempt, rollback_executions.job_id, rollback_executions.result_json, rollback_executions.error_type, rollback_executions.error_message, rollback_executions.missing_outputs_json, rollback_executions.dispatched_at, rollback_executions.completed_at, rollback_executions.timeout_sec, rollback_executions.answered_at, rollback_executions.lost_at, rollback_executions.is_poll_step, rollback_executions.poll_interval_sec, rollback_executions.poll_timeout_sec, rollback_executions.poll_started_at, rollback_executions.last_polled_at, rollback_executions.poll_due_at, rollback_executions.poll_count, rollback_executions.on_failure, rollback_executions.retry_count, rollback_executions.max_retries, rollback_executions.retry_interval_sec, rollback_executions.retry_after, rollback_executions.throttled_since, rollback_executions.created_at, rollback_executions.batch_member_id, rollback_executions.epoch, rollback_executions.runbook_version, rollback_executions.cause, rollback_executions.step_execution_id, rollback_executions.init_execution_id, rollback_executions.sequence_name, rollback_executions.sequence_key 
FROM rollback_executions 
WHERE rollback_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:rows_1) WITH ([value] BIGINT '$[0]')) AS anon_1) AND rollback_executions.status IN ('dispatched', 'pending', 'polling')
GO

-- store.rollbacks.rollbacks_in_sequences
SELECT rollback_executions.id, rollback_executions.batch_id, rollback_executions.step_name, rollback_executions.step_index, rollback_executions.worker_id, rollback_executions.function_name, rollback_executions.params_json, rollback_executions.status, rollback_executions.attempt, rollback_executions.job_id, rollback_executions.result_json, rollback_executions.error_type, rollback_executions.error_message, rollback_executions.missing_outputs_json, rollback_executions.dispatched_at, rollback_executions.completed_at, rollback_executions.timeout_sec, rollback_executions.answered_at, rollback_executions.lost_at, rollback_executions.is_poll_step, rollback_executions.poll_interval_sec, rollback_executions.poll_timeout_sec, rollback_executions.poll_started_at, rollback_executions.last_polled_at, rollback_executions.poll_due_at, rollback_executions.poll_count, rollback_executions.on_failure, rollback_executions.retry_count, rollback_executions.max_retries, rollback_executions.retry_interval_sec, rollback_executions.retry_after, rollback_executions.throttled_since, rollback_executions.created_at, rollback_executions.batch_member_id, rollback_executions.epoch, rollback_executions.runbook_version, rollback_executions.cause, rollback_executions.step_execution_id, rollback_executions.init_execution_id, rollback_executions.sequence_name, rollback_executions.sequence_key 
FROM rollback_executions 
WHERE rollback_executions.sequence_key IN (SELECT anon_1.value 
FROM (SELECT CAST([value] AS NVARCHAR(101)) AS [value] FROM OPENJSON(:p_values) WITH ([value] NVARCHAR(MAX) '$[0]')) AS anon_1)
GO

-- store.rollbacks.rollbacks_of_batches
SELECT rollback_executions.id, rollback_executions.batch_id, rollback_executions.step_name, rollback_executions.step_index, rollback_executions.worker_id, rollback_executions.function_name, rollback_executions.params_json, rollback_executions.status, rollback_executions.attempt, rollback_executions.job_id, rollback_executions.result_json, rollback_executions.error_type, rollback_executions.error_message, rollback_executions.missing_outputs_json, rollback_executions.dispatched_at, rollback_executions.completed_at, rollback_executions.timeout_sec, rollback_executions.answered_at, rollback_executions.lost_at, rollback_executions.is_poll_step, rollback_executions.poll_interval_sec, rollback_executions.poll_timeout_sec, rollback_executions.poll_started_at, rollback_executions.last_polled_at, rollback_executions.poll_due_at, rollback_executions.poll_count, rollback_executions.on_failure, rollback_executions.retry_count, rollback_executions.max_retries, rollback_executions.retry_interval_sec, rollback_executions.retry_after, rollback_executions.throttled_since, rollback_executions.created_at, rollback_executions.batch_member_id, rollback_executions.epoch, rollback_executions.runbook_version, rollback_executions.cause, rollback_executions.step_execution_id, rollback_executions.init_execution_id, rollback_executions.sequence_name, rollback_executions.sequence_key 
FROM rollback_executions 
WHERE rollback_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.rollbacks.rollbacks_of_members
SELECT rollback_executions.id, rollback_executions.batch_id, rollback_executions.step_name, rollback_executions.step_index, rollback_executions.worker_id, rollback_executions.function_name, rollback_executions.params_json, rollback_executions.status, rollback_executions.attempt, rollback_executions.job_id, rollback_executions.result_json, rollback_executions.error_type, rollback_executions.error_message, rollback_executions.missing_outputs_json, rollback_executions.dispatched_at, rollback_executions.completed_at, rollback_executions.timeout_sec, rollback_executions.answered_at, rollback_executions.lost_at, rollback_executions.is_poll_step, rollback_executions.poll_interval_sec, rollback_executions.poll_timeout_sec, rollback_executions.poll_started_at, rollback_executions.last_polled_at, rollback_executions.poll_due_at, rollback_executions.poll_count, rollback_executions.on_failure, rollback_executions.retry_count, rollback_executions.max_retries, rollback_executions.retry_interval_sec, rollback_executions.retry_after, rollback_executions.throttled_since, rollback_executions.created_at, rollback_executions.batch_member_id, rollback_executions.epoch, rollback_executions.runbook_version, rollback_executions.cause, rollback_executions.step_execution_id, rollback_executions.init_execution_id, rollback_executions.sequence_name, rollback_executions.sequence_key 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.runbooks.active_runbook
SELECT runbooks.id, runbooks.name, runbooks.version, runbooks.yaml_content, runbooks.content_hash, runbooks.data_table_name, runbooks.data_table_schema, runbooks.is_active, runbooks.overdue_behavior, runbooks.ignore_overdue_applied, runbooks.rerun_init, runbooks.published_by, runbooks.created_at, runbooks.last_error, runbooks.last_error_at, runbooks.read_at 
FROM runbooks 
WHERE runbooks.is_active = 1 AND runbooks.name_key = :p_wanted_name_key ORDER BY runbooks.name_key
GO

-- store.runbooks.active_runbooks
SELECT runbooks.id, runbooks.name, runbooks.version, runbooks.yaml_content, runbooks.content_hash, runbooks.data_table_name, runbooks.data_table_schema, runbooks.is_active, runbooks.overdue_behavior, runbooks.ignore_overdue_applied, runbooks.rerun_init, runbooks.published_by, runbooks.created_at, runbooks.last_error, runbooks.last_error_at, runbooks.read_at 
FROM runbooks 
WHERE runbooks.is_active = 1 ORDER BY runbooks.name_key
GO

-- store.runbooks.clear_error
UPDATE runbooks SET last_error=:last_error, last_error_at=:last_error_at WHERE runbooks.id = :p_runbook_id AND runbooks.last_error IS NOT NULL
GO

-- store.runbooks.content_hashes
SELECT runbooks.id, runbooks.content_hash 
FROM runbooks 
WHERE runbooks.name_key = :p_key ORDER BY runbooks.id
GO

-- store.runbooks.deactivate_version
UPDATE runbooks SET is_active=:is_active WHERE runbooks.name_key = :name_key_1 AND runbooks.version = :version_1 AND runbooks.is_active = 1
GO

-- store.runbooks.last_read
SELECT TOP 1 runbooks.id, runbooks.name, runbooks.version, runbooks.yaml_content, runbooks.content_hash, runbooks.data_table_name, runbooks.data_table_schema, runbooks.is_active, runbooks.overdue_behavior, runbooks.ignore_overdue_applied, runbooks.rerun_init, runbooks.published_by, runbooks.created_at, runbooks.last_error, runbooks.last_error_at, runbooks.read_at 
FROM runbooks 
WHERE runbooks.name_key = :name_key_1 AND runbooks.read_at IS NOT NULL ORDER BY runbooks.read_at DESC, runbooks.version DESC
GO

-- store.runbooks.latest_version
SELECT TOP 1 runbooks.id, runbooks.name, runbooks.version, runbooks.yaml_content, runbooks.content_hash, runbooks.data_table_name, runbooks.data_table_schema, runbooks.is_active, runbooks.overdue_behavior, runbooks.ignore_overdue_applied, runbooks.rerun_init, runbooks.published_by, runbooks.created_at, runbooks.last_error, runbooks.last_error_at, runbooks.read_at 
FROM runbooks 
WHERE runbooks.name_key = :p_key ORDER BY runbooks.version DESC
GO

-- store.runbooks.lock_runbook
SELECT runbooks.id 
FROM runbooks WITH (UPDLOCK, ROWLOCK) 
WHERE runbooks.name_key = :p_key ORDER BY runbooks.version
GO

-- store.runbooks.note_read
UPDATE runbooks SET read_at=:p_at WHERE runbooks.id = :p_runbook_id
GO

-- store.runbooks.note_transition_done
UPDATE runbooks SET ignore_overdue_applied=:ignore_overdue_applied WHERE runbooks.id = :id_1
GO

-- store.runbooks.publish_version
SELECT runbooks.id, runbooks.name, runbooks.version, runbooks.yaml_content, runbooks.content_hash, runbooks.data_table_name, runbooks.data_table_schema, runbooks.is_active, runbooks.overdue_behavior, runbooks.ignore_overdue_applied, runbooks.rerun_init, runbooks.published_by, runbooks.created_at, runbooks.last_error, runbooks.last_error_at, runbooks.read_at 
FROM runbooks WITH (UPDLOCK, ROWLOCK) 
WHERE runbooks.name_key = :name_key_1 ORDER BY runbooks.version
GO

-- store.runbooks.publish_version
SELECT count(*) AS count_1 
FROM runbooks 
WHERE runbooks.data_table_name = :data_table_name_1
GO

-- store.runbooks.publish_version
UPDATE runbooks SET is_active=:is_active WHERE runbooks.name_key = :name_key_1 AND runbooks.is_active = 1
GO

-- store.runbooks.publish_version
INSERT INTO runbooks (name, name_key, version, data_table_name, data_table_schema, yaml_content, content_hash, overdue_behavior, rerun_init, published_by, is_active, ignore_overdue_applied, created_at) OUTPUT inserted.id, inserted.name, inserted.version, inserted.yaml_content, inserted.content_hash, inserted.data_table_name, inserted.data_table_schema, inserted.is_active, inserted.overdue_behavior, inserted.ignore_overdue_applied, inserted.rerun_init, inserted.published_by, inserted.created_at, inserted.last_error, inserted.last_error_at, inserted.read_at SELECT TOP 2147483647 anon_1.name AS name, anon_1.name_key AS name_key, anon_1.version AS version, anon_1.data_table_name AS data_table_name, anon_1.data_table_schema AS data_table_schema, anon_1.yaml_content AS yaml_content, anon_1.content_hash AS content_hash, anon_1.overdue_behavior AS overdue_behavior, anon_1.rerun_init AS rerun_init, anon_1.published_by AS published_by, :p_shared_is_active AS is_active, :p_shared_ignore_overdue_applied AS ignore_overdue_applied, :p_shared_created_at AS created_at 
FROM (SELECT CAST([name] AS NVARCHAR(101)) AS [name], CAST([name_key] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [name_key], [version], CAST([data_table_name] AS NVARCHAR(64)) AS [data_table_name], CAST([data_table_schema] AS NVARCHAR(64)) AS [data_table_schema], [yaml_content], CAST([content_hash] AS NVARCHAR(65)) AS [content_hash], CAST([overdue_behavior] AS NVARCHAR(21)) AS [overdue_behavior], [rerun_init], CAST([published_by] AS NVARCHAR(201)) AS [published_by], [place] FROM OPENJSON(:p_rows) WITH ([name] NVARCHAR(MAX) '$[0]', [name_key] NVARCHAR(MAX) '$[1]', [version] BIGINT '$[2]', [data_table_name] NVARCHAR(MAX) '$[3]', [data_table_schema] NVARCHAR(MAX) '$[4]', [yaml_content] NVARCHAR(MAX) '$[5]', [content_hash] NVARCHAR(MAX) '$[6]', [overdue_behavior] NVARCHAR(MAX) '$[7]', [rerun_init] BIT '$[8]', [published_by] NVARCHAR(MAX) '$[9]', [place] BIGINT '$[10]')) AS anon_1 ORDER BY anon_1.place
GO

-- store.runbooks.record_error
UPDATE runbooks SET last_error=:last_error, last_error_at=:last_error_at WHERE runbooks.id = :id_1
GO

-- store.runbooks.runbook_names
SELECT runbooks.name 
FROM runbooks 
WHERE runbooks.version = :version_1 ORDER BY runbooks.name_key
GO

-- store.runbooks.runbook_version
SELECT runbooks.id, runbooks.name, runbooks.version, runbooks.yaml_content, runbooks.content_hash, runbooks.data_table_name, runbooks.data_table_schema, runbooks.is_active, runbooks.overdue_behavior, runbooks.ignore_overdue_applied, runbooks.rerun_init, runbooks.published_by, runbooks.created_at, runbooks.last_error, runbooks.last_error_at, runbooks.read_at 
FROM runbooks 
WHERE runbooks.name_key = :p_key AND runbooks.version = :p_version
GO

-- store.runbooks.runbook_versions
SELECT runbooks.id, runbooks.name, runbooks.version, runbooks.yaml_content, runbooks.content_hash, runbooks.data_table_name, runbooks.data_table_schema, runbooks.is_active, runbooks.overdue_behavior, runbooks.ignore_overdue_applied, runbooks.rerun_init, runbooks.published_by, runbooks.created_at, runbooks.last_error, runbooks.last_error_at, runbooks.read_at 
FROM runbooks 
WHERE runbooks.name_key = :name_key_1 ORDER BY runbooks.version DESC
GO

-- store.runbooks.runbooks_by_id
SELECT runbooks.id, runbooks.name, runbooks.version, runbooks.yaml_content, runbooks.content_hash, runbooks.data_table_name, runbooks.data_table_schema, runbooks.is_active, runbooks.overdue_behavior, runbooks.ignore_overdue_applied, runbooks.rerun_init, runbooks.published_by, runbooks.created_at, runbooks.last_error, runbooks.last_error_at, runbooks.read_at 
FROM runbooks 
WHERE runbooks.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.runbooks.runbooks_in_use
SELECT runbooks.id 
FROM runbooks 
WHERE runbooks.is_active = 1 OR runbooks.id IN (SELECT batches.runbook_id 
FROM batches 
WHERE batches.status IN ('active', 'detected', 'init_dispatched')) ORDER BY runbooks.id
GO

-- store.runbooks.versions_under_way
SELECT under_way.batch_id, under_way.version 
FROM (SELECT phase_executions.batch_id AS batch_id, phase_executions.runbook_version AS version 
FROM phase_executions, batches 
WHERE phase_executions.batch_id = batches.id AND phase_executions.status IN ('dispatched', 'pending') AND batches.status IN ('active', 'detected', 'init_dispatched') UNION SELECT init_executions.batch_id AS batch_id, init_executions.runbook_version AS version 
FROM init_executions, batches 
WHERE init_executions.batch_id = batches.id AND init_executions.status IN ('dispatched', 'pending', 'polling') AND batches.status = 'init_dispatched') AS under_way ORDER BY under_way.batch_id, under_way.version
GO

-- store.setaside.forget_set_aside
DELETE FROM set_aside_keys WHERE set_aside_keys.runbook_id = :runbook_id_1 AND set_aside_keys.member_key_fold IN (SELECT anon_1.value 
FROM (SELECT CAST([value] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [value] FROM OPENJSON(:rows_1) WITH ([value] NVARCHAR(MAX) '$[0]')) AS anon_1)
GO

-- store.setaside.keys_set_aside
SELECT set_aside_keys.member_key_fold 
FROM set_aside_keys 
WHERE set_aside_keys.runbook_id = :runbook_id_1 AND set_aside_keys.member_key_fold IN (SELECT anon_1.value 
FROM (SELECT CAST([value] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [value] FROM OPENJSON(:rows_1) WITH ([value] NVARCHAR(MAX) '$[0]')) AS anon_1)
GO

-- store.setaside.set_keys_aside
INSERT INTO set_aside_keys (member_key_fold, runbook_id) SELECT TOP 2147483647 anon_1.member_key_fold AS member_key_fold, :p_shared_runbook_id AS runbook_id 
FROM (SELECT CAST([member_key_fold] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [member_key_fold], [place] FROM OPENJSON(:p_rows) WITH ([member_key_fold] NVARCHAR(MAX) '$[0]', [place] BIGINT '$[1]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM set_aside_keys AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.runbook_id = :p_shared_runbook_id AND there.member_key_fold = anon_1.member_key_fold)) ORDER BY anon_1.place
GO

-- store.signoffs.note_used
UPDATE approvals SET used_at=:p_at WHERE approvals.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND approvals.used_at IS NULL
GO

-- store.signoffs.sign
INSERT INTO approvals (batch_id, subject, phase_execution_id, hold_key, runbook_version, batch_start_time, digest, covered_after, covered_no, members, decision, signed_by, roles, is_signed_in, signed_at, reason) OUTPUT inserted.id SELECT TOP 2147483647 anon_1.batch_id AS batch_id, anon_1.subject AS subject, anon_1.phase_execution_id AS phase_execution_id, anon_1.hold_key AS hold_key, anon_1.runbook_version AS runbook_version, anon_1.batch_start_time AS batch_start_time, anon_1.digest AS digest, anon_1.covered_after AS covered_after, anon_1.covered_no AS covered_no, anon_1.members AS members, anon_1.decision AS decision, anon_1.signed_by AS signed_by, anon_1.roles AS roles, anon_1.is_signed_in AS is_signed_in, anon_1.signed_at AS signed_at, anon_1.reason AS reason 
FROM (SELECT [batch_id], CAST([subject] AS NVARCHAR(21)) AS [subject], [phase_execution_id], CAST([hold_key] AS NVARCHAR(65)) AS [hold_key], [runbook_version], [batch_start_time], CAST([digest] AS NVARCHAR(101)) AS [digest], [covered_after], [covered_no], [members], CAST([decision] AS NVARCHAR(21)) AS [decision], CAST([signed_by] AS NVARCHAR(201)) AS [signed_by], CAST([roles] AS NVARCHAR(201)) AS [roles], [is_signed_in], [signed_at], [reason], [place] FROM OPENJSON(:p_rows) WITH ([batch_id] BIGINT '$[0]', [subject] NVARCHAR(MAX) '$[1]', [phase_execution_id] BIGINT '$[2]', [hold_key] NVARCHAR(MAX) '$[3]', [runbook_version] BIGINT '$[4]', [batch_start_time] DATETIME2(6) '$[5]', [digest] NVARCHAR(MAX) '$[6]', [covered_after] BIGINT '$[7]', [covered_no] BIGINT '$[8]', [members] BIGINT '$[9]', [decision] NVARCHAR(MAX) '$[10]', [signed_by] NVARCHAR(MAX) '$[11]', [roles] NVARCHAR(MAX) '$[12]', [is_signed_in] BIT '$[13]', [signed_at] DATETIME2(6) '$[14]', [reason] NVARCHAR(MAX) '$[15]', [place] BIGINT '$[16]')) AS anon_1 ORDER BY anon_1.place
GO

-- store.signoffs.signatures_of_batches
SELECT approvals.batch_id, approvals.subject, approvals.phase_execution_id, approvals.hold_key, approvals.runbook_version, approvals.batch_start_time, approvals.digest, approvals.covered_after, approvals.covered_no, approvals.members, approvals.decision, approvals.signed_by, approvals.roles, approvals.is_signed_in, approvals.signed_at, approvals.reason, approvals.id, approvals.withdrawn_at, approvals.used_at 
FROM approvals 
WHERE approvals.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.signoffs.withdraw_signatures
UPDATE approvals SET withdrawn_at=:p_at OUTPUT inserted.id WHERE approvals.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND approvals.withdrawn_at IS NULL AND approvals.used_at IS NULL
GO

-- store.statecounts.state_counts
SELECT member_counts.batch_id, member_counts.counted_as, member_counts.members 
FROM member_counts 
WHERE member_counts.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:rows_1) WITH ([value] BIGINT '$[0]')) AS anon_1) AND member_counts.members > 0
GO

-- store.statecounts.state_counts
SELECT phase_executions.id, phase_executions.batch_id 
FROM phase_executions 
WHERE phase_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND phase_executions.status = 'dispatched'
GO

-- store.statecounts.state_counts
SELECT step_counts.phase_execution_id, step_counts.step_index, step_counts.status, step_counts.steps AS count 
FROM step_counts 
WHERE step_counts.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_phase_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_counts.steps > 0
GO

-- store.statecounts.state_counts
SELECT batches.id AS batch_id, batches.status AS batch_status, CASE WHEN ((SELECT TOP 1 1 
FROM phase_executions 
WHERE phase_executions.batch_id = batches.id AND phase_executions.status = 'dispatched' AND phase_executions.expanded_at IS NULL) IS NOT NULL) THEN 1 ELSE 0 END AS is_phase_beginning, CASE WHEN ((SELECT TOP 1 1 
FROM phase_executions 
WHERE phase_executions.batch_id = batches.id AND phase_executions.status = 'pending') IS NOT NULL) THEN 1 ELSE 0 END AS is_phase_ahead 
FROM batches 
WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.steps.cancel_steps_of_batches
SELECT phase_executions.id, phase_executions.batch_id, phase_executions.runbook_version, phase_executions.phase_name, phase_executions.phase_index, phase_executions.offset_minutes, phase_executions.due_at, phase_executions.status, phase_executions.dispatched_at, phase_executions.dispatch_count, phase_executions.expanded_at, phase_executions.completed_at, phase_executions.member_count, phase_executions.pilot_done_at, phase_executions.woken_at, phase_executions.late_after 
FROM phase_executions 
WHERE phase_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.steps.cancel_steps_of_batches
UPDATE step_executions SET status=:p_values_status, completed_at=:p_values_completed_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_member_id, inserted.phase_execution_id, inserted.step_index, inserted.batch_id, inserted.job_id, inserted.lost_at WHERE step_executions.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'dispatched'
GO

-- store.steps.cancel_steps_of_batches
UPDATE step_executions SET status=:p_values_status, completed_at=:p_values_completed_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_member_id, inserted.phase_execution_id, inserted.step_index, inserted.batch_id, inserted.job_id, inserted.lost_at WHERE step_executions.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'pending'
GO

-- store.steps.cancel_steps_of_batches
UPDATE step_executions SET status=:p_values_status, completed_at=:p_values_completed_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_member_id, inserted.phase_execution_id, inserted.step_index, inserted.batch_id, inserted.job_id, inserted.lost_at WHERE step_executions.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'polling'
GO

-- store.steps.cancel_steps_of_members
UPDATE step_executions SET status=:p_values_status, completed_at=:p_values_completed_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_member_id, inserted.phase_execution_id, inserted.step_index, inserted.batch_id, inserted.job_id, inserted.lost_at WHERE step_executions.batch_member_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'dispatched'
GO

-- store.steps.cancel_steps_of_members
UPDATE step_executions SET status=:p_values_status, completed_at=:p_values_completed_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_member_id, inserted.phase_execution_id, inserted.step_index, inserted.batch_id, inserted.job_id, inserted.lost_at WHERE step_executions.batch_member_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'pending'
GO

-- store.steps.cancel_steps_of_members
UPDATE step_executions SET status=:p_values_status, completed_at=:p_values_completed_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_member_id, inserted.phase_execution_id, inserted.step_index, inserted.batch_id, inserted.job_id, inserted.lost_at WHERE step_executions.batch_member_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'polling'
GO

-- store.steps.cancel_steps_of_older_epochs
UPDATE step_executions SET status=:p_values_status, completed_at=:p_values_completed_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_member_id, inserted.phase_execution_id, inserted.step_index, inserted.batch_id, inserted.job_id, inserted.lost_at WHERE step_executions.batch_member_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'dispatched' AND step_executions.epoch < (SELECT batch_members.epoch 
FROM batch_members 
WHERE batch_members.id = step_executions.batch_member_id)
GO

-- store.steps.cancel_steps_of_older_epochs
UPDATE step_executions SET status=:p_values_status, completed_at=:p_values_completed_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_member_id, inserted.phase_execution_id, inserted.step_index, inserted.batch_id, inserted.job_id, inserted.lost_at WHERE step_executions.batch_member_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'pending' AND step_executions.epoch < (SELECT batch_members.epoch 
FROM batch_members 
WHERE batch_members.id = step_executions.batch_member_id)
GO

-- store.steps.cancel_steps_of_older_epochs
UPDATE step_executions SET status=:p_values_status, completed_at=:p_values_completed_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_member_id, inserted.phase_execution_id, inserted.step_index, inserted.batch_id, inserted.job_id, inserted.lost_at WHERE step_executions.batch_member_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'polling' AND step_executions.epoch < (SELECT batch_members.epoch 
FROM batch_members 
WHERE batch_members.id = step_executions.batch_member_id)
GO

-- store.steps.cancel_steps_of_phases
UPDATE step_executions SET status=:p_values_status, completed_at=:p_values_completed_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_member_id, inserted.phase_execution_id, inserted.step_index, inserted.batch_id, inserted.job_id, inserted.lost_at WHERE step_executions.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'dispatched'
GO

-- store.steps.cancel_steps_of_phases
UPDATE step_executions SET status=:p_values_status, completed_at=:p_values_completed_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_member_id, inserted.phase_execution_id, inserted.step_index, inserted.batch_id, inserted.job_id, inserted.lost_at WHERE step_executions.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'pending'
GO

-- store.steps.cancel_steps_of_phases
UPDATE step_executions SET status=:p_values_status, completed_at=:p_values_completed_at, poll_due_at=:p_values_poll_due_at, retry_after=:p_values_retry_after, throttled_since=:p_values_throttled_since OUTPUT inserted.id, inserted.batch_member_id, inserted.phase_execution_id, inserted.step_index, inserted.batch_id, inserted.job_id, inserted.lost_at WHERE step_executions.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'polling'
GO

-- store.steps.current_steps_of_members
SELECT step_executions.id, step_executions.phase_execution_id, step_executions.status, step_executions.batch_member_id 
FROM step_executions JOIN batch_members ON batch_members.id = step_executions.batch_member_id AND batch_members.epoch = step_executions.epoch 
WHERE step_executions.batch_member_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:rows_1) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.steps.done_steps_of_members
SELECT step_executions.phase_execution_id, step_executions.batch_member_id, step_executions.epoch, step_executions.step_index 
FROM step_executions 
WHERE step_executions.batch_member_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:rows_1) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'succeeded'
GO

-- store.steps.insert_phase_steps
INSERT INTO step_executions (batch_member_id, batch_id, epoch, step_name, step_index, worker_id, timeout_sec, is_poll_step, poll_interval_sec, poll_timeout_sec, on_failure, max_retries, retry_interval_sec, status, attempt, poll_count, retry_count, created_at, phase_execution_id) SELECT TOP 2147483647 anon_1.id AS batch_member_id, anon_1.batch_id AS batch_id, anon_1.epoch AS epoch, :p_alike_step_name AS step_name, :p_alike_step_index AS step_index, :p_alike_worker_id AS worker_id, :p_alike_timeout_sec AS timeout_sec, :p_alike_is_poll_step AS is_poll_step, :p_alike_poll_interval_sec AS poll_interval_sec, :p_alike_poll_timeout_sec AS poll_timeout_sec, :p_alike_on_failure AS on_failure, :p_alike_max_retries AS max_retries, :p_alike_retry_interval_sec AS retry_interval_sec, :p_alike_status AS status, :p_alike_attempt AS attempt, :p_alike_poll_count AS poll_count, :p_alike_retry_count AS retry_count, :p_alike_created_at AS created_at, :p_alike_phase_execution_id AS phase_execution_id 
FROM (SELECT batch_members.id AS id, batch_members.batch_id AS batch_id, batch_members.epoch AS epoch 
FROM batch_members 
WHERE batch_members.id IN (SELECT anon_2.value 
FROM (SELECT [value] FROM OPENJSON(:p_member_ids) WITH ([value] BIGINT '$[0]')) AS anon_2) AND (batch_members.first_phase_version IS NULL OR batch_members.first_phase_version != :p_version OR batch_members.first_phase_place <= :p_place)) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM step_executions AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.batch_member_id = anon_1.id AND there.epoch = anon_1.epoch AND there.phase_execution_id = :p_alike_phase_execution_id AND there.step_index = :p_alike_step_index)) ORDER BY anon_1.id
GO

-- store.steps.insert_phase_steps
SELECT phase_executions.id, phase_executions.batch_id, phase_executions.runbook_version, phase_executions.phase_name, phase_executions.phase_index, phase_executions.offset_minutes, phase_executions.due_at, phase_executions.status, phase_executions.dispatched_at, phase_executions.dispatch_count, phase_executions.expanded_at, phase_executions.completed_at, phase_executions.member_count, phase_executions.pilot_done_at, phase_executions.woken_at, phase_executions.late_after 
FROM phase_executions 
WHERE phase_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.steps.insert_steps
INSERT INTO step_executions (step_name, step_index, worker_id, timeout_sec, is_poll_step, poll_interval_sec, poll_timeout_sec, on_failure, max_retries, retry_interval_sec, batch_id, phase_execution_id, batch_member_id, epoch, status, attempt, poll_count, retry_count, created_at) OUTPUT inserted.id, inserted.phase_execution_id, inserted.batch_member_id, inserted.epoch, inserted.step_index, inserted.batch_id SELECT TOP 2147483647 anon_1.step_name AS step_name, anon_1.step_index AS step_index, anon_1.worker_id AS worker_id, anon_1.timeout_sec AS timeout_sec, anon_1.is_poll_step AS is_poll_step, anon_1.poll_interval_sec AS poll_interval_sec, anon_1.poll_timeout_sec AS poll_timeout_sec, anon_1.on_failure AS on_failure, anon_1.max_retries AS max_retries, anon_1.retry_interval_sec AS retry_interval_sec, anon_1.batch_id AS batch_id, anon_1.phase_execution_id AS phase_execution_id, anon_1.batch_member_id AS batch_member_id, anon_1.epoch AS epoch, :p_shared_status AS status, :p_shared_attempt AS attempt, :p_shared_poll_count AS poll_count, :p_shared_retry_count AS retry_count, :p_shared_created_at AS created_at 
FROM (SELECT CAST([step_name] AS NVARCHAR(101)) AS [step_name], [step_index], CAST([worker_id] AS NVARCHAR(101)) AS [worker_id], [timeout_sec], [is_poll_step], [poll_interval_sec], [poll_timeout_sec], CAST([on_failure] AS NVARCHAR(101)) AS [on_failure], [max_retries], [retry_interval_sec], [batch_id], [phase_execution_id], [batch_member_id], [epoch], [place] FROM OPENJSON(:p_rows) WITH ([step_name] NVARCHAR(MAX) '$[0]', [step_index] BIGINT '$[1]', [worker_id] NVARCHAR(MAX) '$[2]', [timeout_sec] BIGINT '$[3]', [is_poll_step] BIT '$[4]', [poll_interval_sec] BIGINT '$[5]', [poll_timeout_sec] BIGINT '$[6]', [on_failure] NVARCHAR(MAX) '$[7]', [max_retries] BIGINT '$[8]', [retry_interval_sec] BIGINT '$[9]', [batch_id] BIGINT '$[10]', [phase_execution_id] BIGINT '$[11]', [batch_member_id] BIGINT '$[12]', [epoch] BIGINT '$[13]', [place] BIGINT '$[14]')) AS anon_1 
WHERE NOT (EXISTS (SELECT * 
FROM step_executions AS there WITH (UPDLOCK, HOLDLOCK, ROWLOCK) 
WHERE there.batch_member_id = anon_1.batch_member_id AND there.epoch = anon_1.epoch AND there.phase_execution_id = anon_1.phase_execution_id AND there.step_index = anon_1.step_index)) ORDER BY anon_1.place
GO

-- store.steps.members_in_phases
SELECT step_executions.phase_execution_id, step_executions.batch_member_id 
FROM step_executions JOIN batch_members ON batch_members.id = step_executions.batch_member_id AND batch_members.epoch = step_executions.epoch 
WHERE step_executions.batch_member_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:rows_1) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.phase_execution_id IN (SELECT anon_2.value 
FROM (SELECT [value] FROM OPENJSON(:rows_2) WITH ([value] BIGINT '$[0]')) AS anon_2) AND step_executions.step_index = :step_index_1
GO

-- store.steps.members_yet_to_begin
SELECT step_executions.batch_member_id 
FROM step_executions 
WHERE step_executions.phase_execution_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:rows_1) WITH ([value] BIGINT '$[0]')) AS anon_1) AND step_executions.status = 'pending' AND step_executions.step_index = :step_index_1 AND NOT (EXISTS (SELECT * 
FROM step_executions AS step_executions_1 
WHERE step_executions_1.batch_member_id = step_executions.batch_member_id AND step_executions_1.epoch = step_executions.epoch AND step_executions_1.phase_execution_id = :phase_execution_id_1))
GO

-- store.steps.steps_in_state_page
SELECT TOP 7 step_executions.id 
FROM step_executions 
WHERE step_executions.status = 'pending' AND step_executions.id > :id_1 AND step_executions.phase_execution_id = :phase_execution_id_1 ORDER BY step_executions.id
GO

-- store.steps.steps_in_state_page
SELECT step_executions.id, step_executions.batch_id, step_executions.step_name, step_executions.step_index, step_executions.worker_id, step_executions.function_name, step_executions.params_json, step_executions.status, step_executions.attempt, step_executions.job_id, step_executions.result_json, step_executions.error_type, step_executions.error_message, step_executions.missing_outputs_json, step_executions.dispatched_at, step_executions.completed_at, step_executions.timeout_sec, step_executions.answered_at, step_executions.lost_at, step_executions.is_poll_step, step_executions.poll_interval_sec, step_executions.poll_timeout_sec, step_executions.poll_started_at, step_executions.last_polled_at, step_executions.poll_due_at, step_executions.poll_count, step_executions.on_failure, step_executions.retry_count, step_executions.max_retries, step_executions.retry_interval_sec, step_executions.retry_after, step_executions.throttled_since, step_executions.created_at, step_executions.phase_execution_id, step_executions.batch_member_id, step_executions.epoch, step_executions.holds_place 
FROM step_executions 
WHERE step_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.steps.steps_of_members
SELECT step_executions.id, step_executions.batch_id, step_executions.step_name, step_executions.step_index, step_executions.worker_id, step_executions.function_name, step_executions.params_json, step_executions.status, step_executions.attempt, step_executions.job_id, step_executions.result_json, step_executions.error_type, step_executions.error_message, step_executions.missing_outputs_json, step_executions.dispatched_at, step_executions.completed_at, step_executions.timeout_sec, step_executions.answered_at, step_executions.lost_at, step_executions.is_poll_step, step_executions.poll_interval_sec, step_executions.poll_timeout_sec, step_executions.poll_started_at, step_executions.last_polled_at, step_executions.poll_due_at, step_executions.poll_count, step_executions.on_failure, step_executions.retry_count, step_executions.max_retries, step_executions.retry_interval_sec, step_executions.retry_after, step_executions.throttled_since, step_executions.created_at, step_executions.phase_execution_id, step_executions.batch_member_id, step_executions.epoch, step_executions.holds_place 
FROM step_executions 
WHERE step_executions.batch_member_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_values) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.steps.steps_page
SELECT TOP 7 step_executions.id, step_executions.batch_id, step_executions.step_name, step_executions.step_index, step_executions.worker_id, step_executions.function_name, step_executions.params_json, step_executions.status, step_executions.attempt, step_executions.job_id, step_executions.result_json, step_executions.error_type, step_executions.error_message, step_executions.missing_outputs_json, step_executions.dispatched_at, step_executions.completed_at, step_executions.timeout_sec, step_executions.answered_at, step_executions.lost_at, step_executions.is_poll_step, step_executions.poll_interval_sec, step_executions.poll_timeout_sec, step_executions.poll_started_at, step_executions.last_polled_at, step_executions.poll_due_at, step_executions.poll_count, step_executions.on_failure, step_executions.retry_count, step_executions.max_retries, step_executions.retry_interval_sec, step_executions.retry_after, step_executions.throttled_since, step_executions.created_at, step_executions.phase_execution_id, step_executions.batch_member_id, step_executions.epoch, step_executions.holds_place 
FROM step_executions 
WHERE step_executions.batch_id = :batch_id_1 AND step_executions.id > :id_1 AND step_executions.phase_execution_id = :phase_execution_id_1 ORDER BY step_executions.id
GO

-- store.transit.knows_the_bus
SELECT TOP 1 bus_recent_ids.id 
FROM bus_recent_ids ORDER BY bus_recent_ids.id
GO

-- store.transit.messages_on_their_way
SELECT TOP 7 waiting.message_id 
FROM (SELECT bus_messages.message_id AS message_id 
FROM bus_messages 
WHERE bus_messages.topic = :p_topic UNION ALL SELECT outbox.message_id AS message_id 
FROM outbox 
WHERE outbox.topic = :p_topic) AS waiting ORDER BY waiting.message_id
GO

-- store.undofailures.count_undo_failures
SELECT count(rollback_executions.id) AS count_1 
FROM rollback_executions LEFT OUTER JOIN batches ON batches.id = rollback_executions.batch_id LEFT OUTER JOIN batch_members ON batch_members.id = rollback_executions.batch_member_id LEFT OUTER JOIN init_executions ON init_executions.id = rollback_executions.init_execution_id 
WHERE rollback_executions.status IN ('failed', 'poll_timeout') AND (batch_members.epoch = rollback_executions.epoch OR rollback_executions.batch_member_id IS NULL AND init_executions.status IN ('failed', 'poll_timeout')) AND rollback_executions.batch_id = :batch_id_1
GO

-- store.undofailures.undo_causes
SELECT TOP 7 rollback_executions.batch_id, batches.runbook_name, rollback_executions.sequence_name, rollback_executions.step_name, rollback_executions.error_type, min(substring(coalesce(rollback_executions.error_message, ''), 1, 200)) AS error, count(*) AS steps, count(DISTINCT rollback_executions.batch_member_id) AS members, min(rollback_executions.id) AS example_id 
FROM rollback_executions LEFT OUTER JOIN batches ON batches.id = rollback_executions.batch_id LEFT OUTER JOIN batch_members ON batch_members.id = rollback_executions.batch_member_id LEFT OUTER JOIN init_executions ON init_executions.id = rollback_executions.init_execution_id 
WHERE rollback_executions.status IN ('failed', 'poll_timeout') AND (batch_members.epoch = rollback_executions.epoch OR rollback_executions.batch_member_id IS NULL AND init_executions.status IN ('failed', 'poll_timeout')) AND rollback_executions.batch_id = :batch_id_1 GROUP BY rollback_executions.batch_id, batches.runbook_name, rollback_executions.sequence_name, rollback_executions.step_name, rollback_executions.error_type, coalesce(rollback_executions.error_fingerprint, substring(coalesce(rollback_executions.error_message, ''), 1, 200)) ORDER BY rollback_executions.batch_id DESC, count(*) DESC, min(rollback_executions.id)
GO

-- store.undofailures.undo_failure_counts
SELECT batches.runbook_name, count(rollback_executions.id) AS count 
FROM rollback_executions LEFT OUTER JOIN batches ON batches.id = rollback_executions.batch_id LEFT OUTER JOIN batch_members ON batch_members.id = rollback_executions.batch_member_id LEFT OUTER JOIN init_executions ON init_executions.id = rollback_executions.init_execution_id 
WHERE rollback_executions.status IN ('failed', 'poll_timeout') AND (batch_members.epoch = rollback_executions.epoch OR rollback_executions.batch_member_id IS NULL AND init_executions.status IN ('failed', 'poll_timeout')) GROUP BY batches.runbook_name ORDER BY batches.runbook_name
GO

-- store.undofailures.undo_failures_by_cause
SELECT batches.runbook_name, rollback_executions.sequence_name, rollback_executions.step_name, rollback_executions.error_type, min(substring(coalesce(rollback_executions.error_message, ''), 1, 200)) AS error, count(*) AS steps, count(DISTINCT rollback_executions.batch_member_id) AS members, min(batch_members.member_key) AS example_key 
FROM rollback_executions LEFT OUTER JOIN batches ON batches.id = rollback_executions.batch_id LEFT OUTER JOIN batch_members ON batch_members.id = rollback_executions.batch_member_id LEFT OUTER JOIN init_executions ON init_executions.id = rollback_executions.init_execution_id 
WHERE rollback_executions.status IN ('failed', 'poll_timeout') AND (batch_members.epoch = rollback_executions.epoch OR rollback_executions.batch_member_id IS NULL AND init_executions.status IN ('failed', 'poll_timeout')) AND rollback_executions.batch_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) GROUP BY batches.runbook_name, rollback_executions.sequence_name, rollback_executions.step_name, rollback_executions.error_type, coalesce(rollback_executions.error_fingerprint, substring(coalesce(rollback_executions.error_message, ''), 1, 200)) ORDER BY count(*) DESC, min(rollback_executions.id)
GO

-- store.undofailures.undo_failures_of_members
SELECT rollback_executions.id, rollback_executions.batch_id, rollback_executions.batch_member_id, rollback_executions.cause, rollback_executions.sequence_name, rollback_executions.step_name, rollback_executions.status, rollback_executions.attempt, rollback_executions.error_type, rollback_executions.error_message, rollback_executions.completed_at, batches.runbook_name, batch_members.member_key 
FROM rollback_executions LEFT OUTER JOIN batches ON batches.id = rollback_executions.batch_id LEFT OUTER JOIN batch_members ON batch_members.id = rollback_executions.batch_member_id LEFT OUTER JOIN init_executions ON init_executions.id = rollback_executions.init_execution_id 
WHERE rollback_executions.status IN ('failed', 'poll_timeout') AND (batch_members.epoch = rollback_executions.epoch OR rollback_executions.batch_member_id IS NULL AND init_executions.status IN ('failed', 'poll_timeout')) AND rollback_executions.batch_member_id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_member_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.undofailures.undo_failures_page
SELECT TOP 7 rollback_executions.id, rollback_executions.batch_id, rollback_executions.batch_member_id, rollback_executions.cause, rollback_executions.sequence_name, rollback_executions.step_name, rollback_executions.status, rollback_executions.attempt, rollback_executions.error_type, rollback_executions.error_message, rollback_executions.completed_at, batches.runbook_name, batch_members.member_key 
FROM rollback_executions LEFT OUTER JOIN batches ON batches.id = rollback_executions.batch_id LEFT OUTER JOIN batch_members ON batch_members.id = rollback_executions.batch_member_id LEFT OUTER JOIN init_executions ON init_executions.id = rollback_executions.init_execution_id 
WHERE rollback_executions.status IN ('failed', 'poll_timeout') AND (batch_members.epoch = rollback_executions.epoch OR rollback_executions.batch_member_id IS NULL AND init_executions.status IN ('failed', 'poll_timeout')) AND rollback_executions.batch_id = :batch_id_1 AND rollback_executions.id < :id_1 ORDER BY rollback_executions.id DESC
GO

-- store.undofailures.undo_steps_like
SELECT rollback_executions.id 
FROM rollback_executions LEFT OUTER JOIN batches ON batches.id = rollback_executions.batch_id LEFT OUTER JOIN batch_members ON batch_members.id = rollback_executions.batch_member_id LEFT OUTER JOIN init_executions ON init_executions.id = rollback_executions.init_execution_id, rollback_executions AS one 
WHERE rollback_executions.status IN ('failed', 'poll_timeout') AND (batch_members.epoch = rollback_executions.epoch OR rollback_executions.batch_member_id IS NULL AND init_executions.status IN ('failed', 'poll_timeout')) AND one.id = :id_1 AND rollback_executions.batch_id = one.batch_id AND rollback_executions.sequence_name = one.sequence_name AND rollback_executions.step_name = one.step_name AND coalesce(rollback_executions.error_type, :coalesce_1) = coalesce(one.error_type, :coalesce_2) AND coalesce(rollback_executions.error_fingerprint, substring(coalesce(rollback_executions.error_message, ''), 1, 200)) = coalesce(one.error_fingerprint, substring(coalesce(one.error_message, ''), 1, 200))
GO

-- store.undoing.known_places
SELECT batch_members.id, batch_members.member_key_fold, batch_members.added_at, batch_members.remove_reason, CASE WHEN (batches.status = 'completed' AND batch_members.status = 'active') THEN 1 ELSE 0 END AS is_done, CASE WHEN (batch_members.worker_data_json != :worker_data_json_1 OR (EXISTS (SELECT * 
FROM step_executions 
WHERE step_executions.batch_member_id = batch_members.id AND step_executions.attempt > :attempt_1))) THEN 1 ELSE 0 END AS has_done 
FROM batch_members JOIN batches ON batches.id = batch_members.batch_id 
WHERE batches.runbook_name = :p_runbook_name AND batch_members.member_key_fold IN (SELECT anon_1.value 
FROM (SELECT CAST([value] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [value] FROM OPENJSON(:p_folds) WITH ([value] NVARCHAR(MAX) '$[0]')) AS anon_1)
GO

-- store.undoing.undo_members
UPDATE batch_members SET status=:p_values_status, caught_up_at=:p_values_caught_up_at, removed_at=:p_values_removed_at, removed_by=:p_shared_removed_by, remove_reason=:p_shared_remove_reason, remove_dispatched_at=:p_values_remove_dispatched_at, seen_off_at=:p_values_seen_off_at, undone_at=:p_values_undone_at, undo_version=:p_shared_undo_version OUTPUT inserted.id, inserted.batch_id FROM batch_members, (SELECT [id], [epoch] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [epoch] BIGINT '$[1]')) AS anon_1 WHERE batch_members.id = anon_1.id AND batch_members.epoch = anon_1.epoch AND batch_members.status IN ('active', 'failed')
GO

-- store.undoing.undo_members
UPDATE batch_members SET caught_up_at=:p_values_caught_up_at, removed_at=:p_values_removed_at, removed_by=:p_shared_removed_by, remove_reason=:p_shared_remove_reason, remove_dispatched_at=:p_values_remove_dispatched_at, seen_off_at=:p_values_seen_off_at, undone_at=:p_values_undone_at, undo_version=:p_shared_undo_version OUTPUT inserted.id, inserted.batch_id FROM batch_members, (SELECT [id], [epoch] FROM OPENJSON(:p_rows) WITH ([id] BIGINT '$[0]', [epoch] BIGINT '$[1]')) AS anon_1 WHERE batch_members.id = anon_1.id AND batch_members.epoch = anon_1.epoch AND batch_members.status = 'removed' AND batch_members.remove_reason = :remove_reason_1
GO

-- store.undoing.undo_progress
SELECT count(*) AS count_1 
FROM batch_members 
WHERE batch_members.batch_id = :p_batch_id AND batch_members.undone_at IS NOT NULL
GO

-- store.undoing.undo_progress
SELECT count(*) AS count_1 
FROM batch_members 
WHERE batch_members.batch_id = :p_batch_id AND batch_members.undone_at IS NOT NULL AND batch_members.status IN ('active', 'failed', 'removed') AND 'undoing' = CASE WHEN ((SELECT TOP 1 1 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND rollback_executions.status IN ('dispatched', 'pending', 'polling')) IS NOT NULL OR batch_members.status = 'removed' AND batch_members.removed_at IS NOT NULL AND batch_members.seen_off_at IS NULL AND (batch_members.remove_reason NOT IN ('excluded by a person', 'moved', 'the source no longer returned it, and its batch had not begun'))) THEN 'undoing' WHEN (batch_members.status = 'removed' AND batch_members.undone_at IS NOT NULL) THEN 'undone' WHEN (batch_members.status = 'removed') THEN 'left' WHEN (batch_members.status = 'failed') THEN 'failed' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'cancelled') IS NOT NULL) THEN 'stopped' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM step_executions 
WHERE step_executions.batch_member_id = batch_members.id AND step_executions.status IN ('dispatched', 'pending', 'polling') AND step_executions.epoch = batch_members.epoch) IS NOT NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'active') IS NOT NULL AND batch_members.caught_up_at IS NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'active') IS NOT NULL AND (SELECT TOP 1 1 
FROM phase_executions 
WHERE phase_executions.batch_id = batch_members.batch_id AND phase_executions.status = 'dispatched' AND phase_executions.expanded_at IS NULL) IS NOT NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM phase_executions 
WHERE phase_executions.batch_id = batch_members.batch_id AND phase_executions.status = 'pending') IS NOT NULL) THEN 'waiting' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status IN ('detected', 'init_dispatched')) IS NOT NULL) THEN 'waiting' WHEN (batch_members.status = 'active') THEN 'done' END
GO

-- store.undoing.undo_progress
SELECT rollback_executions.status, count(*) AS count 
FROM rollback_executions JOIN batch_members ON rollback_executions.batch_member_id = batch_members.id AND rollback_executions.epoch = batch_members.epoch 
WHERE batch_members.batch_id = :p_batch_id AND batch_members.undone_at IS NOT NULL AND rollback_executions.cause = 'member_removed' GROUP BY rollback_executions.status
GO

-- store.undoing.undoable_members
SELECT batch_members.id, batch_members.member_key, batch_members.member_key_fold, batch_members.status, batch_members.epoch, batch_members.undone_at, batch_members.remove_reason, CASE WHEN ((SELECT TOP 1 1 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND rollback_executions.status IN ('dispatched', 'pending', 'polling')) IS NOT NULL OR batch_members.status = 'removed' AND batch_members.removed_at IS NOT NULL AND batch_members.seen_off_at IS NULL AND (batch_members.remove_reason NOT IN ('excluded by a person', 'moved', 'the source no longer returned it, and its batch had not begun'))) THEN 'undoing' WHEN (batch_members.status = 'removed' AND batch_members.undone_at IS NOT NULL) THEN 'undone' WHEN (batch_members.status = 'removed') THEN 'left' WHEN (batch_members.status = 'failed') THEN 'failed' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'cancelled') IS NOT NULL) THEN 'stopped' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM step_executions 
WHERE step_executions.batch_member_id = batch_members.id AND step_executions.status IN ('dispatched', 'pending', 'polling') AND step_executions.epoch = batch_members.epoch) IS NOT NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'active') IS NOT NULL AND batch_members.caught_up_at IS NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status = 'active') IS NOT NULL AND (SELECT TOP 1 1 
FROM phase_executions 
WHERE phase_executions.batch_id = batch_members.batch_id AND phase_executions.status = 'dispatched' AND phase_executions.expanded_at IS NULL) IS NOT NULL) THEN 'under_way' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM phase_executions 
WHERE phase_executions.batch_id = batch_members.batch_id AND phase_executions.status = 'pending') IS NOT NULL) THEN 'waiting' WHEN (batch_members.status = 'active' AND (SELECT TOP 1 1 
FROM batches 
WHERE batches.id = batch_members.batch_id AND batches.status IN ('detected', 'init_dispatched')) IS NOT NULL) THEN 'waiting' WHEN (batch_members.status = 'active') THEN 'done' END AS state, CASE WHEN (EXISTS (SELECT * 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND (rollback_executions.status IN ('dispatched', 'pending', 'polling') OR rollback_executions.lost_at IS NOT NULL))) THEN 1 ELSE 0 END AS is_rolling_back, CASE WHEN (EXISTS (SELECT * 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND rollback_executions.epoch = batch_members.epoch AND rollback_executions.attempt > :attempt_1)) THEN 1 ELSE 0 END AS was_rolled_back 
FROM batch_members 
WHERE batch_members.batch_id = :p_batch_id
GO

-- store.unresolved.failing_runbooks
SELECT runbooks.name, runbooks.last_error, runbooks.last_error_at, runbooks.read_at 
FROM runbooks 
WHERE runbooks.is_active = 1 AND runbooks.last_error IS NOT NULL ORDER BY runbooks.name_key
GO

-- store.unresolved.failures_of_inits
SELECT TOP 200 batches.id AS batch_id, batches.runbook_name, batches.batch_start_time, init_executions.step_name AS place, init_executions.step_name, substring(coalesce(init_executions.error_message, ''), 1, 200) AS error, init_executions.attempt AS count, init_executions.completed_at AS first_at, init_executions.completed_at AS last_at 
FROM init_executions JOIN batches ON batches.id = init_executions.batch_id 
WHERE init_executions.status IN ('failed', 'poll_timeout') AND (batches.status IN ('active', 'detected', 'init_dispatched') OR batches.status IN ('completed', 'failed') AND batches.completed_at >= :p_ended_after) AND init_executions.init_count = batches.init_count ORDER BY init_executions.completed_at, init_executions.id
GO

-- store.unresolved.failures_of_members
SELECT TOP 200 batches.id AS batch_id, batches.runbook_name, batches.batch_start_time, phase_executions.phase_name AS place, step_executions.step_name, min(substring(coalesce(step_executions.error_message, ''), 1, 200)) AS error, count(DISTINCT step_executions.batch_member_id) AS count, min(step_executions.completed_at) AS first_at, max(step_executions.completed_at) AS last_at 
FROM batches JOIN phase_executions ON phase_executions.batch_id = batches.id JOIN step_executions ON step_executions.phase_execution_id = phase_executions.id JOIN batch_members ON batch_members.id = step_executions.batch_member_id AND batch_members.epoch = step_executions.epoch 
WHERE (batches.status IN ('active', 'detected', 'init_dispatched') OR batches.status IN ('completed', 'failed') AND batches.completed_at >= :p_ended_after) AND step_executions.status IN ('failed', 'poll_timeout') AND batch_members.status = 'failed' GROUP BY batches.id, batches.runbook_name, batches.batch_start_time, phase_executions.phase_name, step_executions.step_name, coalesce(step_executions.error_fingerprint, substring(coalesce(step_executions.error_message, ''), 1, 200)) ORDER BY count(DISTINCT step_executions.batch_member_id) DESC, batches.id, min(step_executions.id)
GO

-- store.unresolved.failures_of_undo
SELECT TOP 200 rollback_executions.batch_id, batches.runbook_name, batches.batch_start_time, rollback_executions.sequence_name AS place, rollback_executions.step_name, min(substring(coalesce(rollback_executions.error_message, ''), 1, 200)) AS error, count(*) AS count, min(rollback_executions.completed_at) AS first_at, max(rollback_executions.completed_at) AS last_at 
FROM rollback_executions LEFT OUTER JOIN batches ON batches.id = rollback_executions.batch_id LEFT OUTER JOIN batch_members ON batch_members.id = rollback_executions.batch_member_id LEFT OUTER JOIN init_executions ON init_executions.id = rollback_executions.init_execution_id 
WHERE rollback_executions.status IN ('failed', 'poll_timeout') AND (batch_members.epoch = rollback_executions.epoch OR rollback_executions.batch_member_id IS NULL AND init_executions.status IN ('failed', 'poll_timeout')) GROUP BY rollback_executions.batch_id, batches.runbook_name, batches.batch_start_time, rollback_executions.sequence_name, rollback_executions.step_name ORDER BY count(*) DESC, rollback_executions.batch_id
GO

-- store.unresolved.next_phase
SELECT TOP 1 batches.id AS batch_id, batches.runbook_name, batches.batch_start_time, phase_executions.id AS phase_id, phase_executions.phase_name, phase_executions.due_at 
FROM batches JOIN phase_executions ON phase_executions.batch_id = batches.id 
WHERE phase_executions.status = 'pending' AND batches.status = 'active' AND NOT (EXISTS (SELECT * 
FROM gates AS gate 
WHERE gate.opened_at IS NULL AND (gate.shut_from <= :p_after OR gate.kind != 'freeze' OR gate.swept_at IS NOT NULL) AND (gate.shut_until IS NULL OR gate.shut_until > :p_after) AND gate.worker_id IS NULL AND gate.member_key_fold IS NULL AND gate.phase_execution_id IS NULL AND (gate.batch_id IS NULL OR gate.batch_id = batches.id) AND (gate.runbook_name IS NULL OR gate.runbook_name = batches.runbook_name))) AND phase_executions.due_at > :p_after ORDER BY phase_executions.due_at, phase_executions.id
GO

-- store.unresolved.open_letters
SELECT TOP 200 dead_letters.subscription, dead_letters.message_type, count(*) AS count, min(dead_letters.dead_lettered_at) AS first_at, min(dead_letters.reason) AS reason, max(dead_letters.delivery_count) AS deliveries 
FROM dead_letters 
WHERE dead_letters.status = 'open' GROUP BY dead_letters.subscription, dead_letters.message_type ORDER BY min(dead_letters.dead_lettered_at), dead_letters.subscription, dead_letters.message_type
GO

-- store.unresolved.overdue_phases
SELECT TOP 1000 batches.id AS batch_id, batches.runbook_name, batches.batch_start_time, phase_executions.id AS phase_id, phase_executions.phase_name, phase_executions.due_at 
FROM batches JOIN phase_executions ON phase_executions.batch_id = batches.id 
WHERE phase_executions.status = 'pending' AND batches.status = 'active' AND NOT (EXISTS (SELECT * 
FROM gates AS gate 
WHERE gate.opened_at IS NULL AND (gate.shut_from <= :p_at OR gate.kind != 'freeze' OR gate.swept_at IS NOT NULL) AND (gate.shut_until IS NULL OR gate.shut_until > :p_at) AND gate.worker_id IS NULL AND gate.member_key_fold IS NULL AND gate.phase_execution_id IS NULL AND (gate.batch_id IS NULL OR gate.batch_id = batches.id) AND (gate.runbook_name IS NULL OR gate.runbook_name = batches.runbook_name))) AND phase_executions.due_at <= :p_due_before ORDER BY phase_executions.due_at, phase_executions.id
GO

-- store.unresolved.waiting_holds
SELECT batches.id, batches.runbook_name, batches.batch_start_time, gates.shut_from AS held_at, gates.reason AS hold_reason 
FROM batches JOIN gates ON gates.batch_id = batches.id 
WHERE gates.opened_at IS NULL AND gates.hold_key IS NOT NULL AND gates.approved_at IS NULL ORDER BY gates.shut_from, batches.id
GO

-- store.waiting.open_batches
SELECT batches.id 
FROM batches 
WHERE batches.status IN ('active', 'detected', 'init_dispatched') OR (EXISTS (SELECT * 
FROM rollback_executions 
WHERE rollback_executions.batch_id = batches.id AND rollback_executions.status IN ('dispatched', 'pending', 'polling'))) ORDER BY batches.id
GO

-- store.waiting.waiting_members
SELECT counted.batch_id, counted.member_id, counted.member_key, counted.[group], counted.place, counted.members, counted.phase_id 
FROM (SELECT keyed.batch_id AS batch_id, keyed.member_id AS member_id, keyed.member_key AS member_key, keyed.phase_id AS phase_id, dense_rank() OVER (ORDER BY keyed.batch_id, keyed.member_status, keyed.is_caught_up, keyed.is_leaving, keyed.gate_fold, keyed.is_told, keyed.is_pilot, keyed.joined_no, keyed.first_version, keyed.first_place, keyed.is_undoing, keyed.phase_id, keyed.is_first, keyed.has_place, keyed.step_name, keyed.worker_id, keyed.step_status, keyed.is_out, keyed.retry_due, keyed.poll_due) AS [group], row_number() OVER (PARTITION BY keyed.batch_id, keyed.member_status, keyed.is_caught_up, keyed.is_leaving, keyed.gate_fold, keyed.is_told, keyed.is_pilot, keyed.joined_no, keyed.first_version, keyed.first_place, keyed.is_undoing, keyed.phase_id, keyed.is_first, keyed.has_place, keyed.step_name, keyed.worker_id, keyed.step_status, keyed.is_out, keyed.retry_due, keyed.poll_due ORDER BY keyed.due_at, keyed.member_id) AS place, count(*) OVER (PARTITION BY keyed.batch_id, keyed.member_status, keyed.is_caught_up, keyed.is_leaving, keyed.gate_fold, keyed.is_told, keyed.is_pilot, keyed.joined_no, keyed.first_version, keyed.first_place, keyed.is_undoing, keyed.phase_id, keyed.is_first, keyed.has_place, keyed.step_name, keyed.worker_id, keyed.step_status, keyed.is_out, keyed.retry_due, keyed.poll_due) AS members 
FROM (SELECT batch_members.batch_id AS batch_id, batch_members.id AS member_id, batch_members.member_key AS member_key, batch_members.status AS member_status, CASE WHEN (batch_members.caught_up_at IS NOT NULL) THEN 1 ELSE 0 END AS is_caught_up, CASE WHEN (batch_members.status = 'removed' AND batch_members.removed_at IS NOT NULL AND batch_members.seen_off_at IS NULL AND batch_members.remove_reason != 'moved') THEN 1 ELSE 0 END AS is_leaving, CASE WHEN (batch_members.member_key_fold IN (SELECT anon_1.value 
FROM (SELECT CAST([value] AS NVARCHAR(401)) COLLATE Latin1_General_100_BIN2 AS [value] FROM OPENJSON(:p_gate_folds) WITH ([value] NVARCHAR(MAX) '$[0]')) AS anon_1)) THEN batch_members.member_key_fold END AS gate_fold, CASE WHEN (batch_members.id IN (SELECT anon_2.value 
FROM (SELECT [value] FROM OPENJSON(:p_told) WITH ([value] BIGINT '$[0]')) AS anon_2)) THEN 1 ELSE 0 END AS is_told, CASE WHEN (batch_members.is_pilot = 1) THEN 1 ELSE 0 END AS is_pilot, batch_members.joined_no AS joined_no, batch_members.first_phase_version AS first_version, batch_members.first_phase_place AS first_place, work.is_undoing AS is_undoing, work.phase_id AS phase_id, CASE WHEN (work.step_index = :step_index_1) THEN 1 ELSE 0 END AS is_first, CASE WHEN (EXISTS (SELECT first.id 
FROM step_executions AS first 
WHERE first.batch_member_id = work.member_id AND first.epoch = work.epoch AND first.phase_execution_id = work.phase_id AND first.step_index = :step_index_2 AND first.holds_place = 1)) THEN 1 ELSE 0 END AS has_place, work.step_name AS step_name, work.worker_id AS worker_id, work.status AS step_status, CASE WHEN (work.lost_at IS NOT NULL) THEN 1 ELSE 0 END AS is_out, CASE WHEN (work.retry_after <= :p_at) THEN 1 WHEN (work.retry_after IS NOT NULL) THEN 2 ELSE 0 END AS retry_due, CASE WHEN (work.poll_due_at <= :p_at) THEN 1 WHEN (work.poll_due_at IS NOT NULL) THEN 2 ELSE 0 END AS poll_due, coalesce(work.lost_at, work.retry_after, work.poll_due_at) AS due_at 
FROM (SELECT placed.id AS id, placed.step_index AS step_index, placed.step_name AS step_name, placed.worker_id AS worker_id, placed.status AS status, placed.lost_at AS lost_at, placed.retry_after AS retry_after, placed.poll_due_at AS poll_due_at, placed.epoch AS epoch, placed.member_id AS member_id, placed.is_undoing AS is_undoing, placed.rank AS rank, placed.phase_id AS phase_id, placed.version AS version, placed.nearness AS nearness, placed.phase_index AS phase_index, placed.turn AS turn 
FROM (SELECT found.id AS id, found.step_index AS step_index, found.step_name AS step_name, found.worker_id AS worker_id, found.status AS status, found.lost_at AS lost_at, found.retry_after AS retry_after, found.poll_due_at AS poll_due_at, found.epoch AS epoch, found.member_id AS member_id, found.is_undoing AS is_undoing, found.rank AS rank, found.phase_id AS phase_id, found.version AS version, found.nearness AS nearness, found.phase_index AS phase_index, row_number() OVER (PARTITION BY found.member_id ORDER BY found.rank, found.version, found.nearness, found.phase_index, found.step_index, found.id) AS turn 
FROM (SELECT step_executions.id AS id, step_executions.step_index AS step_index, step_executions.step_name AS step_name, step_executions.worker_id AS worker_id, step_executions.status AS status, step_executions.lost_at AS lost_at, step_executions.retry_after AS retry_after, step_executions.poll_due_at AS poll_due_at, step_executions.epoch AS epoch, step_executions.batch_member_id AS member_id, 0 AS is_undoing, CASE WHEN (step_executions.lost_at IS NOT NULL) THEN 0 WHEN (step_executions.status = 'polling' OR step_executions.retry_after IS NOT NULL) THEN 3 ELSE 4 END AS rank, phase_executions.id AS phase_id, phase_executions.runbook_version AS version, -phase_executions.offset_minutes AS nearness, phase_executions.phase_index AS phase_index 
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id JOIN batch_members ON batch_members.id = step_executions.batch_member_id AND batch_members.epoch = step_executions.epoch 
WHERE step_executions.phase_execution_id IN (SELECT phase_executions.id 
FROM phase_executions 
WHERE phase_executions.batch_id IN (SELECT anon_3.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_3) AND phase_executions.status = 'dispatched') AND step_executions.status IN ('dispatched', 'pending', 'polling') UNION ALL SELECT step_executions.id AS id, step_executions.step_index AS step_index, step_executions.step_name AS step_name, step_executions.worker_id AS worker_id, step_executions.status AS status, step_executions.lost_at AS lost_at, step_executions.retry_after AS retry_after, step_executions.poll_due_at AS poll_due_at, step_executions.epoch AS epoch, step_executions.batch_member_id AS member_id, 0 AS is_undoing, CASE WHEN (step_executions.lost_at IS NOT NULL) THEN 0 WHEN (step_executions.status = 'polling' OR step_executions.retry_after IS NOT NULL) THEN 3 ELSE 4 END AS rank, phase_executions.id AS phase_id, phase_executions.runbook_version AS version, -phase_executions.offset_minutes AS nearness, phase_executions.phase_index AS phase_index 
FROM step_executions JOIN phase_executions ON phase_executions.id = step_executions.phase_execution_id 
WHERE step_executions.batch_id IN (SELECT anon_4.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_4) AND step_executions.lost_at IS NOT NULL AND (step_executions.status NOT IN ('dispatched', 'pending', 'polling')) UNION ALL SELECT rollback_executions.id AS id, rollback_executions.step_index AS step_index, rollback_executions.step_name AS step_name, rollback_executions.worker_id AS worker_id, rollback_executions.status AS status, rollback_executions.lost_at AS lost_at, rollback_executions.retry_after AS retry_after, rollback_executions.poll_due_at AS poll_due_at, rollback_executions.epoch AS epoch, rollback_executions.batch_member_id AS member_id, 1 AS is_undoing, CASE WHEN (rollback_executions.lost_at IS NOT NULL) THEN 0 WHEN (rollback_executions.status = 'polling' OR rollback_executions.retry_after IS NOT NULL) THEN 1 ELSE 2 END AS rank, NULL AS phase_id, 0 AS version, 0 AS nearness, 0 AS phase_index 
FROM rollback_executions 
WHERE rollback_executions.batch_id IN (SELECT anon_5.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_5) AND rollback_executions.status IN ('dispatched', 'pending', 'polling') AND rollback_executions.batch_member_id IS NOT NULL UNION ALL SELECT rollback_executions.id AS id, rollback_executions.step_index AS step_index, rollback_executions.step_name AS step_name, rollback_executions.worker_id AS worker_id, rollback_executions.status AS status, rollback_executions.lost_at AS lost_at, rollback_executions.retry_after AS retry_after, rollback_executions.poll_due_at AS poll_due_at, rollback_executions.epoch AS epoch, rollback_executions.batch_member_id AS member_id, 1 AS is_undoing, CASE WHEN (rollback_executions.lost_at IS NOT NULL) THEN 0 WHEN (rollback_executions.status = 'polling' OR rollback_executions.retry_after IS NOT NULL) THEN 1 ELSE 2 END AS rank, NULL AS phase_id, 0 AS version, 0 AS nearness, 0 AS phase_index 
FROM rollback_executions 
WHERE rollback_executions.batch_id IN (SELECT anon_6.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_6) AND rollback_executions.lost_at IS NOT NULL AND (rollback_executions.status NOT IN ('dispatched', 'pending', 'polling')) AND rollback_executions.batch_member_id IS NOT NULL UNION ALL SELECT NULL AS id, NULL AS step_index, NULL AS step_name, NULL AS worker_id, NULL AS status, NULL AS lost_at, NULL AS retry_after, NULL AS poll_due_at, batch_members.epoch AS epoch, batch_members.id AS member_id, 0 AS is_undoing, 5 AS rank, NULL AS phase_id, 0 AS version, 0 AS nearness, 0 AS phase_index 
FROM batch_members JOIN batches ON batches.id = batch_members.batch_id 
WHERE batch_members.batch_id IN (SELECT anon_7.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_7) AND (batch_members.status = 'active' AND batches.status IN ('active', 'detected', 'init_dispatched') OR batch_members.status = 'removed' AND batch_members.removed_at IS NOT NULL AND batch_members.seen_off_at IS NULL AND batch_members.remove_reason != 'moved')) AS found) AS placed 
WHERE placed.turn = 1) AS work JOIN batch_members ON batch_members.id = work.member_id) AS keyed) AS counted 
WHERE counted.place <= 5 ORDER BY counted.[group], counted.place
GO

-- store.waking.count_wakes
UPDATE batches SET wake_count=(coalesce(batches.wake_count, :coalesce_1) + :coalesce_2) OUTPUT inserted.id, inserted.runbook_name, inserted.wake_count WHERE batches.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_batch_ids) WITH ([value] BIGINT '$[0]')) AS anon_1)
GO

-- store.waking.jobs_out_of
SELECT step_executions.id, step_executions.status, step_executions.job_id, step_executions.lost_at, step_executions.worker_id, step_executions.phase_execution_id, batch_members.member_key 
FROM step_executions LEFT OUTER JOIN batch_members ON batch_members.id = step_executions.batch_member_id 
WHERE step_executions.batch_id = :p_batch_id AND step_executions.lost_at IS NOT NULL
GO

-- store.waking.joiners_among
SELECT batch_members.id 
FROM batch_members 
WHERE batch_members.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_member_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND batch_members.status = 'active' AND batch_members.caught_up_at IS NULL ORDER BY batch_members.id
GO

-- store.waking.members_to_wake
SELECT TOP 7 batch_members.id 
FROM batch_members 
WHERE batch_members.batch_id = :p_batch_id AND batch_members.id > :p_after AND (batch_members.status = 'active' AND batch_members.caught_up_at IS NULL OR (EXISTS (SELECT * 
FROM step_executions 
WHERE step_executions.batch_member_id = batch_members.id AND step_executions.status = 'pending')) OR (EXISTS (SELECT * 
FROM rollback_executions 
WHERE rollback_executions.batch_member_id = batch_members.id AND rollback_executions.status = 'pending'))) ORDER BY batch_members.id
GO

-- store.waves.waves_between
SELECT TOP 5000 batches.id, batches.runbook_name, batches.batch_start_time, CASE WHEN (EXISTS (SELECT * 
FROM gates AS standing 
WHERE standing.batch_id = batches.id AND standing.opened_at IS NULL AND standing.hold_key IS NOT NULL)) THEN 1 ELSE 0 END AS is_held 
FROM batches 
WHERE batches.batch_start_time IS NOT NULL AND (batches.batch_start_time >= :p_begin AND batches.batch_start_time < :p_end OR (EXISTS (SELECT * 
FROM phase_executions 
WHERE phase_executions.batch_id = batches.id AND phase_executions.status IN ('cancelled', 'completed', 'dispatched', 'failed', 'pending', 'skipped') AND phase_executions.due_at >= :p_begin AND phase_executions.due_at < :p_end))) ORDER BY batches.batch_start_time, batches.id
GO

-- store.windows.note_woken
UPDATE phase_executions SET woken_at=:p_values_woken_at OUTPUT inserted.id WHERE phase_executions.id IN (SELECT anon_1.value 
FROM (SELECT [value] FROM OPENJSON(:p_ids) WITH ([value] BIGINT '$[0]')) AS anon_1) AND phase_executions.status = 'dispatched'
GO

-- store.windows.running_phases
SELECT phase_executions.id, phase_executions.batch_id, batches.runbook_name, phase_executions.runbook_version, phase_executions.phase_index, phase_executions.dispatched_at, phase_executions.woken_at 
FROM phase_executions JOIN batches ON batches.id = phase_executions.batch_id 
WHERE phase_executions.status = 'dispatched' AND batches.status IN ('active', 'detected', 'init_dispatched')
GO

-- store.upgrade.upgrade
DECLARE @tables INT, @patience INT = @@LOCK_TIMEOUT; SELECT @tables = COUNT(*) FROM sys.tables; EXEC sp_getapplock @Resource = 'matoolkit schema', @LockMode = 'Exclusive', @LockTimeout = @patience
GO

-- store.upgrade.upgrade
SELECT APPLOCK_MODE('public', 'matoolkit schema', 'Transaction')
GO
