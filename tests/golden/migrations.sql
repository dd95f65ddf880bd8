BEGIN TRANSACTION;

CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

GO

-- Running upgrade  -> 0001

CREATE TABLE runbooks (
    id BIGINT NOT NULL IDENTITY,
    name NVARCHAR(100) NOT NULL,
    name_key NVARCHAR(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    version INTEGER NOT NULL,
    yaml_content NVARCHAR(max) NOT NULL,
    content_hash NVARCHAR(64) NOT NULL,
    data_table_name NVARCHAR(63) NOT NULL,
    is_active BIT NOT NULL,
    overdue_behavior NVARCHAR(20) NOT NULL,
    ignore_overdue_applied BIT NOT NULL,
    rerun_init BIT NOT NULL,
    published_by NVARCHAR(200) NOT NULL,
    created_at DATETIME2(6) NOT NULL,
    last_error NVARCHAR(max) NULL,
    last_error_at DATETIME2(6) NULL,
    CONSTRAINT pk_runbooks PRIMARY KEY (id),
    CONSTRAINT ck_runbooks_overdue_behavior CHECK (overdue_behavior = 'rerun' OR overdue_behavior = 'ignore'),
    CONSTRAINT uq_runbooks_data_table_name UNIQUE (data_table_name),
    CONSTRAINT uq_runbooks_name_key_version UNIQUE (name_key, version)
);

GO

CREATE UNIQUE INDEX uq_runbooks_active ON runbooks (name_key) WHERE is_active = 1;

GO

CREATE TABLE runbook_automation_settings (
    runbook_key NVARCHAR(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    runbook_name NVARCHAR(100) NOT NULL,
    automation_enabled BIT NOT NULL,
    enabled_at DATETIME2(6) NULL,
    enabled_by NVARCHAR(200) NULL,
    disabled_at DATETIME2(6) NULL,
    disabled_by NVARCHAR(200) NULL,
    CONSTRAINT pk_runbook_automation_settings PRIMARY KEY (runbook_key)
);

GO

CREATE TABLE runbook_ticks (
    runbook_key NVARCHAR(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    runbook_name NVARCHAR(100) NOT NULL,
    runbook_version INTEGER NOT NULL,
    started_at DATETIME2(6) NOT NULL,
    finished_at DATETIME2(6) NOT NULL,
    queried BIT NOT NULL,
    rows_read INTEGER NOT NULL,
    rows_set_aside INTEGER NOT NULL,
    rows_ignored INTEGER NOT NULL,
    batches_created INTEGER NOT NULL,
    batches_rescheduled INTEGER NOT NULL,
    batches_held INTEGER NOT NULL,
    members_added INTEGER NOT NULL,
    members_removed INTEGER NOT NULL,
    members_moved INTEGER NOT NULL,
    members_returned INTEGER NOT NULL,
    members_refreshed INTEGER NOT NULL,
    phases_dispatched INTEGER NOT NULL,
    set_aside_json NVARCHAR(max) NOT NULL,
    remarks_json NVARCHAR(max) NOT NULL,
    CONSTRAINT pk_runbook_ticks PRIMARY KEY (runbook_key)
);

GO

CREATE TABLE data_table_columns (
    id BIGINT NOT NULL IDENTITY,
    table_name NVARCHAR(63) NOT NULL,
    source_name NVARCHAR(max) NOT NULL,
    column_name NVARCHAR(63) NOT NULL,
    CONSTRAINT pk_data_table_columns PRIMARY KEY (id),
    CONSTRAINT uq_data_table_columns_table_name_column_name UNIQUE (table_name, column_name)
);

GO

CREATE TABLE worker_functions (
    worker_id NVARCHAR(100) NOT NULL,
    function_name NVARCHAR(200) NOT NULL,
    parameters_json NVARCHAR(max) NOT NULL,
    announced_at DATETIME2(6) NOT NULL,
    CONSTRAINT pk_worker_functions PRIMARY KEY (worker_id, function_name)
);

GO

CREATE INDEX ix_worker_functions_function_name ON worker_functions (function_name);

GO

INSERT INTO alembic_version (version_num) OUTPUT inserted.version_num VALUES ('0001');

GO

-- Running upgrade 0001 -> 0002

CREATE TABLE batches (
    id BIGINT NOT NULL IDENTITY,
    runbook_id BIGINT NOT NULL,
    runbook_name NVARCHAR(100) NOT NULL,
    batch_start_time DATETIME2(6) NULL,
    status NVARCHAR(20) NOT NULL,
    is_manual BIT NOT NULL,
    created_by NVARCHAR(200) NULL,
    current_phase NVARCHAR(100) NULL,
    detected_at DATETIME2(6) NOT NULL,
    init_dispatched_at DATETIME2(6) NULL,
    init_count INTEGER NOT NULL,
    completed_at DATETIME2(6) NULL,
    reopened_at DATETIME2(6) NULL,
    held_at DATETIME2(6) NULL,
    hold_count INTEGER NOT NULL,
    hold_reason NVARCHAR(max) NULL,
    hold_key NVARCHAR(64) NULL,
    hold_json NVARCHAR(max) NULL,
    approved_hold_key NVARCHAR(64) NULL,
    approved_hold_by NVARCHAR(200) NULL,
    approved_hold_at DATETIME2(6) NULL,
    CONSTRAINT pk_batches PRIMARY KEY (id),
    CONSTRAINT ck_batches_status CHECK (status = 'detected' OR status = 'init_dispatched' OR status = 'active' OR status = 'completed' OR status = 'failed' OR status = 'cancelled'),
    CONSTRAINT fk_batches_runbook_id FOREIGN KEY(runbook_id) REFERENCES runbooks (id)
);

GO

CREATE INDEX ix_batches_runbook_id ON batches (runbook_id);

GO

CREATE INDEX ix_batches_runbook_name_status ON batches (runbook_name, status);

GO

CREATE INDEX ix_batches_status ON batches (status, id);

GO

CREATE INDEX ix_batches_unfinished ON batches (runbook_name, id) WHERE status IN ('active', 'detected', 'init_dispatched');

GO

CREATE UNIQUE INDEX uq_batches_start_time ON batches (runbook_name, batch_start_time) WHERE is_manual = 0;

GO

CREATE TABLE batch_members (
    id BIGINT NOT NULL IDENTITY,
    batch_id BIGINT NOT NULL,
    member_key NVARCHAR(400) NOT NULL,
    member_key_fold NVARCHAR(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    status NVARCHAR(20) NOT NULL,
    epoch INTEGER NOT NULL,
    data_json NVARCHAR(max) NOT NULL,
    data_hash NVARCHAR(32) NOT NULL,
    worker_data_json NVARCHAR(max) NOT NULL,
    added_at DATETIME2(6) NOT NULL,
    add_dispatched_at DATETIME2(6) NULL,
    caught_up_at DATETIME2(6) NULL,
    left_source_at DATETIME2(6) NULL,
    removed_at DATETIME2(6) NULL,
    removed_by NVARCHAR(200) NULL,
    remove_reason NVARCHAR(max) NULL,
    remove_dispatched_at DATETIME2(6) NULL,
    failed_at DATETIME2(6) NULL,
    CONSTRAINT pk_batch_members PRIMARY KEY (id),
    CONSTRAINT ck_batch_members_status CHECK (status = 'active' OR status = 'removed' OR status = 'failed'),
    CONSTRAINT fk_batch_members_batch_id FOREIGN KEY(batch_id) REFERENCES batches (id),
    CONSTRAINT uq_batch_members_batch_id_member_key_fold UNIQUE (batch_id, member_key_fold)
);

GO

CREATE INDEX ix_batch_members_batch_id ON batch_members (batch_id, id);

GO

CREATE INDEX ix_batch_members_member_key_fold ON batch_members (member_key_fold);

GO

CREATE INDEX ix_batch_members_status ON batch_members (batch_id, status, id);

GO

CREATE INDEX ix_batch_members_waiting ON batch_members (batch_id, status) WHERE caught_up_at IS NULL;

GO

CREATE TABLE phase_executions (
    id BIGINT NOT NULL IDENTITY,
    batch_id BIGINT NOT NULL,
    runbook_version INTEGER NOT NULL,
    phase_name NVARCHAR(100) NOT NULL,
    phase_index INTEGER NOT NULL,
    offset_minutes INTEGER NOT NULL,
    due_at DATETIME2(6) NULL,
    status NVARCHAR(20) NOT NULL,
    dispatched_at DATETIME2(6) NULL,
    dispatch_count INTEGER NOT NULL,
    expanded_at DATETIME2(6) NULL,
    completed_at DATETIME2(6) NULL,
    CONSTRAINT pk_phase_executions PRIMARY KEY (id),
    CONSTRAINT ck_phase_executions_status CHECK (status = 'pending' OR status = 'dispatched' OR status = 'completed' OR status = 'failed' OR status = 'skipped' OR status = 'superseded' OR status = 'cancelled'),
    CONSTRAINT fk_phase_executions_batch_id FOREIGN KEY(batch_id) REFERENCES batches (id),
    CONSTRAINT uq_phase_executions_batch_id_runbook_version_phase_index UNIQUE (batch_id, runbook_version, phase_index)
);

GO

CREATE INDEX ix_phase_executions_due ON phase_executions (due_at, id) WHERE status = 'pending';

GO

CREATE INDEX ix_phase_executions_open ON phase_executions (batch_id) WHERE status IN ('dispatched', 'pending');

GO

CREATE INDEX ix_phase_executions_running ON phase_executions (id) WHERE status = 'dispatched';

GO

UPDATE alembic_version SET version_num='0002' WHERE alembic_version.version_num = '0001';

GO

-- Running upgrade 0002 -> 0003

CREATE TABLE step_executions (
    id BIGINT NOT NULL IDENTITY,
    batch_id BIGINT NOT NULL,
    phase_execution_id BIGINT NOT NULL,
    batch_member_id BIGINT NOT NULL,
    epoch INTEGER NOT NULL,
    step_name NVARCHAR(100) NOT NULL,
    step_index INTEGER NOT NULL,
    worker_id NVARCHAR(100) NOT NULL,
    function_name NVARCHAR(max) NULL,
    params_json NVARCHAR(max) NULL,
    status NVARCHAR(20) NOT NULL,
    attempt INTEGER NOT NULL,
    job_id NVARCHAR(100) NULL,
    result_json NVARCHAR(max) NULL,
    error_type NVARCHAR(max) NULL,
    error_message NVARCHAR(max) NULL,
    missing_outputs_json NVARCHAR(max) NULL,
    dispatched_at DATETIME2(6) NULL,
    completed_at DATETIME2(6) NULL,
    timeout_sec INTEGER NOT NULL,
    answered_at DATETIME2(6) NULL,
    lost_at DATETIME2(6) NULL,
    is_poll_step BIT NOT NULL,
    poll_interval_sec INTEGER NULL,
    poll_timeout_sec INTEGER NULL,
    poll_started_at DATETIME2(6) NULL,
    last_polled_at DATETIME2(6) NULL,
    poll_due_at DATETIME2(6) NULL,
    poll_count INTEGER NOT NULL,
    on_failure NVARCHAR(100) NULL,
    retry_count INTEGER NOT NULL,
    max_retries INTEGER NOT NULL,
    retry_interval_sec INTEGER NULL,
    retry_after DATETIME2(6) NULL,
    throttled_since DATETIME2(6) NULL,
    created_at DATETIME2(6) NOT NULL,
    CONSTRAINT pk_step_executions PRIMARY KEY (id),
    CONSTRAINT ck_step_executions_status CHECK (status = 'pending' OR status = 'dispatched' OR status = 'succeeded' OR status = 'failed' OR status = 'polling' OR status = 'poll_timeout' OR status = 'cancelled'),
    CONSTRAINT fk_step_executions_batch_id FOREIGN KEY(batch_id) REFERENCES batches (id),
    CONSTRAINT fk_step_executions_batch_member_id FOREIGN KEY(batch_member_id) REFERENCES batch_members (id),
    CONSTRAINT fk_step_executions_phase_execution_id FOREIGN KEY(phase_execution_id) REFERENCES phase_executions (id),
    CONSTRAINT uq_step_executions_member_step UNIQUE (batch_member_id, epoch, phase_execution_id, step_index)
);

GO

CREATE INDEX ix_step_executions_batch_id ON step_executions (batch_id, id);

GO

CREATE INDEX ix_step_executions_lost ON step_executions (lost_at, id) WHERE lost_at IS NOT NULL;

GO

CREATE INDEX ix_step_executions_phase_status ON step_executions (phase_execution_id, status, id);

GO

CREATE INDEX ix_step_executions_poll ON step_executions (poll_due_at, id) WHERE status = 'polling';

GO

CREATE INDEX ix_step_executions_retry ON step_executions (retry_after, id) WHERE retry_after IS NOT NULL;

GO

CREATE TABLE init_executions (
    id BIGINT NOT NULL IDENTITY,
    batch_id BIGINT NOT NULL,
    runbook_version INTEGER NOT NULL,
    init_count INTEGER NOT NULL,
    step_name NVARCHAR(100) NOT NULL,
    step_index INTEGER NOT NULL,
    worker_id NVARCHAR(100) NOT NULL,
    function_name NVARCHAR(max) NULL,
    params_json NVARCHAR(max) NULL,
    status NVARCHAR(20) NOT NULL,
    attempt INTEGER NOT NULL,
    job_id NVARCHAR(100) NULL,
    result_json NVARCHAR(max) NULL,
    error_type NVARCHAR(max) NULL,
    error_message NVARCHAR(max) NULL,
    missing_outputs_json NVARCHAR(max) NULL,
    dispatched_at DATETIME2(6) NULL,
    completed_at DATETIME2(6) NULL,
    timeout_sec INTEGER NOT NULL,
    answered_at DATETIME2(6) NULL,
    lost_at DATETIME2(6) NULL,
    is_poll_step BIT NOT NULL,
    poll_interval_sec INTEGER NULL,
    poll_timeout_sec INTEGER NULL,
    poll_started_at DATETIME2(6) NULL,
    last_polled_at DATETIME2(6) NULL,
    poll_due_at DATETIME2(6) NULL,
    poll_count INTEGER NOT NULL,
    on_failure NVARCHAR(100) NULL,
    retry_count INTEGER NOT NULL,
    max_retries INTEGER NOT NULL,
    retry_interval_sec INTEGER NULL,
    retry_after DATETIME2(6) NULL,
    throttled_since DATETIME2(6) NULL,
    created_at DATETIME2(6) NOT NULL,
    CONSTRAINT pk_init_executions PRIMARY KEY (id),
    CONSTRAINT ck_init_executions_status CHECK (status = 'pending' OR status = 'dispatched' OR status = 'succeeded' OR status = 'failed' OR status = 'polling' OR status = 'poll_timeout' OR status = 'cancelled'),
    CONSTRAINT fk_init_executions_batch_id FOREIGN KEY(batch_id) REFERENCES batches (id),
    CONSTRAINT uq_init_executions_batch_id_runbook_version_step_index UNIQUE (batch_id, runbook_version, step_index)
);

GO

CREATE INDEX ix_init_executions_lost ON init_executions (lost_at, id) WHERE lost_at IS NOT NULL;

GO

CREATE INDEX ix_init_executions_poll ON init_executions (poll_due_at, id) WHERE status = 'polling';

GO

CREATE INDEX ix_init_executions_retry ON init_executions (retry_after, id) WHERE retry_after IS NOT NULL;

GO

CREATE TABLE rollback_executions (
    id BIGINT NOT NULL IDENTITY,
    batch_id BIGINT NOT NULL,
    batch_member_id BIGINT NULL,
    epoch INTEGER NULL,
    runbook_version INTEGER NOT NULL,
    cause NVARCHAR(20) NOT NULL,
    step_execution_id BIGINT NULL,
    init_execution_id BIGINT NULL,
    sequence_name NVARCHAR(100) NOT NULL,
    sequence_key NVARCHAR(100) NOT NULL,
    step_name NVARCHAR(100) NOT NULL,
    step_index INTEGER NOT NULL,
    worker_id NVARCHAR(100) NOT NULL,
    function_name NVARCHAR(max) NULL,
    params_json NVARCHAR(max) NULL,
    status NVARCHAR(20) NOT NULL,
    attempt INTEGER NOT NULL,
    job_id NVARCHAR(100) NULL,
    result_json NVARCHAR(max) NULL,
    error_type NVARCHAR(max) NULL,
    error_message NVARCHAR(max) NULL,
    missing_outputs_json NVARCHAR(max) NULL,
    dispatched_at DATETIME2(6) NULL,
    completed_at DATETIME2(6) NULL,
    timeout_sec INTEGER NOT NULL,
    answered_at DATETIME2(6) NULL,
    lost_at DATETIME2(6) NULL,
    is_poll_step BIT NOT NULL,
    poll_interval_sec INTEGER NULL,
    poll_timeout_sec INTEGER NULL,
    poll_started_at DATETIME2(6) NULL,
    last_polled_at DATETIME2(6) NULL,
    poll_due_at DATETIME2(6) NULL,
    poll_count INTEGER NOT NULL,
    on_failure NVARCHAR(100) NULL,
    retry_count INTEGER NOT NULL,
    max_retries INTEGER NOT NULL,
    retry_interval_sec INTEGER NULL,
    retry_after DATETIME2(6) NULL,
    throttled_since DATETIME2(6) NULL,
    created_at DATETIME2(6) NOT NULL,
    CONSTRAINT pk_rollback_executions PRIMARY KEY (id),
    CONSTRAINT ck_rollback_executions_cause CHECK (cause = 'step_failed' OR cause = 'init_failed' OR cause = 'member_removed'),
    CONSTRAINT ck_rollback_executions_status CHECK (status = 'pending' OR status = 'dispatched' OR status = 'succeeded' OR status = 'failed' OR status = 'polling' OR status = 'poll_timeout' OR status = 'cancelled'),
    CONSTRAINT fk_rollback_executions_batch_id FOREIGN KEY(batch_id) REFERENCES batches (id),
    CONSTRAINT fk_rollback_executions_batch_member_id FOREIGN KEY(batch_member_id) REFERENCES batch_members (id),
    CONSTRAINT fk_rollback_executions_init_execution_id FOREIGN KEY(init_execution_id) REFERENCES init_executions (id),
    CONSTRAINT fk_rollback_executions_step_execution_id FOREIGN KEY(step_execution_id) REFERENCES step_executions (id),
    CONSTRAINT uq_rollback_executions_sequence_key_step_index UNIQUE (sequence_key, step_index)
);

GO

CREATE INDEX ix_rollback_executions_batch_status ON rollback_executions (batch_id, status, id);

GO

CREATE INDEX ix_rollback_executions_lost ON rollback_executions (lost_at, id) WHERE lost_at IS NOT NULL;

GO

CREATE INDEX ix_rollback_executions_member ON rollback_executions (batch_member_id, status);

GO

CREATE INDEX ix_rollback_executions_poll ON rollback_executions (poll_due_at, id) WHERE status = 'polling';

GO

CREATE INDEX ix_rollback_executions_retry ON rollback_executions (retry_after, id) WHERE retry_after IS NOT NULL;

GO

UPDATE alembic_version SET version_num='0003' WHERE alembic_version.version_num = '0002';

GO

-- Running upgrade 0003 -> 0004

CREATE TABLE outbox (
    id BIGINT NOT NULL IDENTITY,
    topic NVARCHAR(100) NOT NULL,
    message_id NVARCHAR(200) NOT NULL,
    message_type NVARCHAR(50) NOT NULL,
    body NVARCHAR(max) NOT NULL,
    properties_json NVARCHAR(max) NOT NULL,
    order_key NVARCHAR(100) NULL,
    created_at DATETIME2(6) NOT NULL,
    not_before DATETIME2(6) NOT NULL,
    claimed_until DATETIME2(6) NOT NULL,
    claim_token NVARCHAR(36) NULL,
    tries INTEGER NOT NULL,
    CONSTRAINT pk_outbox PRIMARY KEY (id),
    CONSTRAINT uq_outbox_topic_message_id UNIQUE (topic, message_id)
);

GO

CREATE INDEX ix_outbox_unclaimed ON outbox (claimed_until, id);

GO

CREATE INDEX ix_outbox_order_key ON outbox (order_key, id);

GO

CREATE TABLE bus_messages (
    id BIGINT NOT NULL IDENTITY,
    topic NVARCHAR(100) NOT NULL,
    subscription NVARCHAR(100) NOT NULL,
    message_id NVARCHAR(200) NOT NULL,
    message_type NVARCHAR(50) NOT NULL,
    body NVARCHAR(max) NOT NULL,
    properties_json NVARCHAR(max) NOT NULL,
    enqueued_at DATETIME2(6) NOT NULL,
    visible_at DATETIME2(6) NOT NULL,
    expires_at DATETIME2(6) NOT NULL,
    lock_token NVARCHAR(36) NULL,
    delivery_count INTEGER NOT NULL,
    CONSTRAINT pk_bus_messages PRIMARY KEY (id),
    CONSTRAINT uq_bus_messages_message UNIQUE (topic, message_id)
);

GO

CREATE INDEX ix_bus_messages_undeliverable ON bus_messages (id) WHERE delivery_count >= 10;

GO

CREATE INDEX ix_bus_messages_visible ON bus_messages (topic, subscription, visible_at, id);

GO

CREATE TABLE bus_recent_ids (
    id BIGINT NOT NULL IDENTITY,
    topic NVARCHAR(100) NOT NULL,
    message_id NVARCHAR(200) NOT NULL,
    published_at DATETIME2(6) NOT NULL,
    publication BIGINT NULL,
    CONSTRAINT pk_bus_recent_ids PRIMARY KEY (id),
    CONSTRAINT uq_bus_recent_ids_message UNIQUE (topic, message_id)
);

GO

CREATE TABLE dead_letters (
    id BIGINT NOT NULL IDENTITY,
    topic NVARCHAR(100) NOT NULL,
    subscription NVARCHAR(100) NOT NULL,
    message_id NVARCHAR(200) NOT NULL,
    message_type NVARCHAR(50) NOT NULL,
    body NVARCHAR(max) NOT NULL,
    properties_json NVARCHAR(max) NOT NULL,
    reason NVARCHAR(max) NOT NULL,
    description NVARCHAR(max) NULL,
    delivery_count INTEGER NOT NULL,
    enqueued_at DATETIME2(6) NOT NULL,
    dead_lettered_at DATETIME2(6) NOT NULL,
    status NVARCHAR(20) NOT NULL,
    resolved_at DATETIME2(6) NULL,
    resolved_by NVARCHAR(200) NULL,
    resent_message_id NVARCHAR(200) NULL,
    CONSTRAINT pk_dead_letters PRIMARY KEY (id),
    CONSTRAINT ck_dead_letters_status CHECK (status = 'open' OR status = 'resent' OR status = 'discarded'),
    CONSTRAINT uq_dead_letters_message UNIQUE (topic, subscription, message_id, enqueued_at)
);

GO

CREATE INDEX ix_dead_letters_status ON dead_letters (status, id);

GO

UPDATE alembic_version SET version_num='0004' WHERE alembic_version.version_num = '0003';

GO

-- Running upgrade 0004 -> 0005

CREATE TABLE audit_log (
    id BIGINT NOT NULL IDENTITY,
    at DATETIME2(6) NOT NULL,
    actor NVARCHAR(200) NOT NULL,
    action NVARCHAR(100) NOT NULL,
    subject_type NVARCHAR(50) NOT NULL,
    subject_id NVARCHAR(200) NOT NULL,
    runbook_name NVARCHAR(100) NULL,
    batch_id BIGINT NULL,
    before_json NVARCHAR(max) NULL,
    after_json NVARCHAR(max) NULL,
    reason NVARCHAR(max) NULL,
    CONSTRAINT pk_audit_log PRIMARY KEY (id)
);

GO

CREATE INDEX ix_audit_log_batch_id ON audit_log (batch_id, id);

GO

CREATE INDEX ix_audit_log_runbook_name ON audit_log (runbook_name, id);

GO

CREATE INDEX ix_audit_log_subject ON audit_log (subject_type, subject_id, id);

GO

CREATE TABLE idempotency_keys (
    actor NVARCHAR(200) NOT NULL,
    idempotency_key NVARCHAR(200) NOT NULL,
    request_hash NVARCHAR(64) NOT NULL,
    response_status INTEGER NULL,
    response_json NVARCHAR(max) NULL,
    created_at DATETIME2(6) NOT NULL,
    expires_at DATETIME2(6) NOT NULL,
    CONSTRAINT pk_idempotency_keys PRIMARY KEY (actor, idempotency_key)
);

GO

CREATE INDEX ix_idempotency_keys_expires_at ON idempotency_keys (expires_at);

GO

CREATE TABLE leases (
    name NVARCHAR(100) NOT NULL,
    holder NVARCHAR(200) NOT NULL,
    token BIGINT NOT NULL,
    acquired_at DATETIME2(6) NOT NULL,
    expires_at DATETIME2(6) NOT NULL,
    CONSTRAINT pk_leases PRIMARY KEY (name)
);

GO

UPDATE alembic_version SET version_num='0005' WHERE alembic_version.version_num = '0004';

GO

-- Running upgrade 0005 -> 0006

ALTER TABLE batches ADD removals_approved_at DATETIME2(6) NULL;

GO

ALTER TABLE batch_members ADD source_time DATETIME2(6) NULL;

GO

UPDATE batch_members SET source_time=(SELECT batches.batch_start_time
FROM batches
WHERE batches.id = batch_members.batch_id);

GO

CREATE TABLE member_inclusions (
    runbook_key NVARCHAR(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    member_key_fold NVARCHAR(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    runbook_name NVARCHAR(100) NOT NULL,
    member_key NVARCHAR(400) NOT NULL,
    batch_time DATETIME2(6) NOT NULL,
    included_at DATETIME2(6) NOT NULL,
    included_by NVARCHAR(200) NOT NULL,
    reason NVARCHAR(max) NULL,
    applied_at DATETIME2(6) NULL,
    CONSTRAINT pk_member_inclusions PRIMARY KEY (runbook_key, member_key_fold)
);

GO

UPDATE alembic_version SET version_num='0006' WHERE alembic_version.version_num = '0005';

GO

-- Running upgrade 0006 -> 0007

ALTER TABLE batch_members ADD first_phase_version INTEGER NULL;

GO

ALTER TABLE batch_members ADD first_phase_place INTEGER NULL;

GO

ALTER TABLE runbooks ADD read_at DATETIME2(6) NULL;

GO

CREATE TABLE set_aside_keys (
    runbook_id BIGINT NOT NULL,
    member_key_fold NVARCHAR(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    CONSTRAINT pk_set_aside_keys PRIMARY KEY (runbook_id, member_key_fold),
    CONSTRAINT fk_set_aside_keys_runbook_id_runbooks FOREIGN KEY(runbook_id) REFERENCES runbooks (id)
);

GO

UPDATE alembic_version SET version_num='0007' WHERE alembic_version.version_num = '0006';

GO

-- Running upgrade 0007 -> 0008

ALTER TABLE batch_members ADD seen_off_at DATETIME2(6) NULL;

GO

UPDATE batch_members SET caught_up_at=NULL, seen_off_at=batch_members.caught_up_at WHERE batch_members.status = 'removed';

GO

CREATE INDEX ix_batch_members_leaving ON batch_members (id) WHERE removed_at IS NOT NULL AND seen_off_at IS NULL;

GO

UPDATE alembic_version SET version_num='0008' WHERE alembic_version.version_num = '0007';

GO

-- Running upgrade 0008 -> 0009

ALTER TABLE runbooks ADD data_table_schema NVARCHAR(63) NULL;

GO

IF SCHEMA_ID(N'matoolkit_data') IS NULL EXEC(N'CREATE SCHEMA matoolkit_data');

GO

UPDATE runbooks SET data_table_schema = 'matoolkit_data' WHERE OBJECT_ID(QUOTENAME(data_table_name)) IS NULL;

GO

UPDATE alembic_version SET version_num='0009' WHERE alembic_version.version_num = '0008';

GO

-- Running upgrade 0009 -> 0010

CREATE TABLE pace (
    name NVARCHAR(100) NOT NULL,
    speed INTEGER NOT NULL,
    origin DATETIME2(6) NOT NULL,
    CONSTRAINT pk_pace PRIMARY KEY (name)
);

GO

UPDATE alembic_version SET version_num='0010' WHERE alembic_version.version_num = '0009';

GO

-- Running upgrade 0010 -> 0011

ALTER TABLE step_executions ADD error_fingerprint NVARCHAR(32) NULL;

GO

ALTER TABLE init_executions ADD error_fingerprint NVARCHAR(32) NULL;

GO

ALTER TABLE rollback_executions ADD error_fingerprint NVARCHAR(32) NULL;

GO

DROP INDEX ix_step_executions_phase_status ON step_executions;

GO

CREATE INDEX ix_step_executions_phase_status ON step_executions (phase_execution_id, status, id, batch_member_id);

GO

UPDATE alembic_version SET version_num='0011' WHERE alembic_version.version_num = '0010';

GO

-- Running upgrade 0011 -> 0012

ALTER TABLE batch_members ADD undone_at DATETIME2(6) NULL;

GO

ALTER TABLE batch_members ADD undo_version INTEGER NULL;

GO

CREATE TABLE member_exclusions (
    id BIGINT NOT NULL IDENTITY,
    runbook_key NVARCHAR(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    member_key_fold NVARCHAR(400) COLLATE Latin1_General_100_BIN2 NOT NULL,
    runbook_name NVARCHAR(100) NOT NULL,
    member_key NVARCHAR(400) NOT NULL,
    excluded_at DATETIME2(6) NOT NULL,
    excluded_by NVARCHAR(200) NOT NULL,
    reason NVARCHAR(max) NOT NULL,
    included_at DATETIME2(6) NULL,
    CONSTRAINT pk_member_exclusions PRIMARY KEY (id),
    CONSTRAINT uq_member_exclusions_runbook_key_member_key_fold UNIQUE (runbook_key, member_key_fold)
);

GO

UPDATE alembic_version SET version_num='0012' WHERE alembic_version.version_num = '0011';

GO

-- Running upgrade 0012 -> 0013

CREATE INDEX ix_rollback_executions_failed ON rollback_executions (id) WHERE status IN ('failed', 'poll_timeout');

GO

UPDATE alembic_version SET version_num='0013' WHERE alembic_version.version_num = '0012';

GO

-- Running upgrade 0013 -> 0014

CREATE TABLE gates (
    id BIGINT NOT NULL IDENTITY,
    kind NVARCHAR(20) NOT NULL,
    reach NVARCHAR(20) NOT NULL,
    worker_id NVARCHAR(100) NULL,
    runbook_name NVARCHAR(100) NULL,
    batch_id BIGINT NULL,
    member_key NVARCHAR(400) NULL,
    member_key_fold NVARCHAR(400) COLLATE Latin1_General_100_BIN2 NULL,
    shut_from DATETIME2(6) NOT NULL,
    shut_until DATETIME2(6) NULL,
    shut_by NVARCHAR(200) NOT NULL,
    reason NVARCHAR(max) NOT NULL,
    hold_key NVARCHAR(64) NULL,
    shown_json NVARCHAR(max) NULL,
    approved_by NVARCHAR(200) NULL,
    approved_at DATETIME2(6) NULL,
    swept_at DATETIME2(6) NULL,
    opened_at DATETIME2(6) NULL,
    opened_by NVARCHAR(200) NULL,
    opened_reason NVARCHAR(max) NULL,
    CONSTRAINT pk_gates PRIMARY KEY (id),
    CONSTRAINT ck_gates_reach CHECK (reach = 'start' OR reach = 'send'),
    CONSTRAINT fk_gates_batch_id FOREIGN KEY(batch_id) REFERENCES batches (id)
);

GO

CREATE INDEX ix_gates_batch_id ON gates (batch_id);

GO

CREATE INDEX ix_gates_unopened ON gates (id) WHERE opened_at IS NULL;

GO

CREATE UNIQUE INDEX uq_gates_hold ON gates (batch_id) WHERE opened_at IS NULL AND hold_key IS NOT NULL;

GO

INSERT INTO gates (kind, reach, batch_id, shut_from, shut_by, reason, hold_key, shown_json, approved_by, approved_at)
SELECT CASE WHEN hold_json LIKE '{"kind":"called_off"%' THEN 'called_off' WHEN hold_json LIKE '{"kind":"reschedule"%' THEN 'reschedule' WHEN hold_json LIKE '{"kind":"init"%' THEN 'init' WHEN hold_json LIKE '{"kind":"late"%' THEN 'late' WHEN hold_json LIKE '{"kind":"repeat"%' THEN 'repeat' ELSE 'removals' END, 'start', id, held_at,
    CASE WHEN hold_json LIKE '{"kind":"init"%' THEN 'orchestrator' ELSE 'scheduler' END,
    COALESCE(hold_reason, ''), COALESCE(hold_key, ''), hold_json,
    CASE WHEN approved_hold_key = hold_key THEN approved_hold_by END,
    CASE WHEN approved_hold_key = hold_key THEN approved_hold_at END
FROM batches WHERE held_at IS NOT NULL;

GO

ALTER TABLE batches DROP COLUMN held_at;

GO

ALTER TABLE batches DROP COLUMN hold_reason;

GO

ALTER TABLE batches DROP COLUMN hold_key;

GO

ALTER TABLE batches DROP COLUMN hold_json;

GO

ALTER TABLE batches DROP COLUMN approved_hold_key;

GO

ALTER TABLE batches DROP COLUMN approved_hold_by;

GO

ALTER TABLE batches DROP COLUMN approved_hold_at;

GO

UPDATE alembic_version SET version_num='0014' WHERE alembic_version.version_num = '0013';

GO

-- Running upgrade 0014 -> 0015

ALTER TABLE batch_members ADD counted_as INTEGER NULL;

GO

CREATE TABLE step_counts (
    phase_execution_id BIGINT NOT NULL,
    step_index INTEGER NOT NULL,
    status NVARCHAR(20) NOT NULL,
    steps INTEGER NOT NULL,
    CONSTRAINT pk_step_counts PRIMARY KEY (phase_execution_id, step_index, status),
    CONSTRAINT fk_step_counts_phase_execution_id FOREIGN KEY(phase_execution_id) REFERENCES phase_executions (id),
    CONSTRAINT ck_step_counts_status CHECK (status = 'pending' OR status = 'dispatched' OR status = 'succeeded' OR status = 'failed' OR status = 'polling' OR status = 'poll_timeout' OR status = 'cancelled')
);

GO

CREATE TABLE member_counts (
    batch_id BIGINT NOT NULL,
    counted_as INTEGER NOT NULL,
    members INTEGER NOT NULL,
    CONSTRAINT pk_member_counts PRIMARY KEY (batch_id, counted_as),
    CONSTRAINT fk_member_counts_batch_id FOREIGN KEY(batch_id) REFERENCES batches (id)
);

GO

CREATE TABLE batch_changes (
    batch_id BIGINT NOT NULL,
    changes BIGINT NOT NULL,
    CONSTRAINT pk_batch_changes PRIMARY KEY (batch_id),
    CONSTRAINT fk_batch_changes_batch_id FOREIGN KEY(batch_id) REFERENCES batches (id)
);

GO

UPDATE batch_members SET counted_as =
    CASE WHEN caught_up_at IS NOT NULL THEN 1 ELSE 0 END
    + CASE WHEN EXISTS (
            SELECT 1 FROM rollback_executions WHERE rollback_executions.batch_member_id = batch_members.id
            AND rollback_executions.status IN ('pending', 'dispatched', 'polling')
        ) OR (
            status = 'removed' AND removed_at IS NOT NULL AND seen_off_at IS NULL AND remove_reason NOT IN (
                'excluded by a person', 'moved', 'the source no longer returned it, and its batch had not begun'
            )
        ) THEN 2 ELSE 0 END
    + CASE WHEN undone_at IS NOT NULL THEN 4 ELSE 0 END
    + CASE status WHEN 'failed' THEN 8 WHEN 'removed' THEN 16 ELSE 0 END;

GO

INSERT INTO step_counts (phase_execution_id, step_index, status, steps)
SELECT phase_execution_id, step_index, status, COUNT(*) FROM step_executions
GROUP BY phase_execution_id, step_index, status;

GO

INSERT INTO member_counts (batch_id, counted_as, members)
SELECT batch_id, counted_as, COUNT(*) FROM batch_members GROUP BY batch_id, counted_as;

GO

INSERT INTO batch_changes (batch_id, changes) SELECT id, 1 FROM batches;

GO

UPDATE alembic_version SET version_num='0015' WHERE alembic_version.version_num = '0014';

GO

-- Running upgrade 0015 -> 0016

CREATE INDEX ix_step_executions_ended ON step_executions (worker_id, status, completed_at) WHERE completed_at IS NOT NULL;

GO

UPDATE alembic_version SET version_num='0016' WHERE alembic_version.version_num = '0015';

GO

-- Running upgrade 0016 -> 0017

ALTER TABLE gates ADD phase_execution_id BIGINT NULL;

GO

ALTER TABLE gates ADD allowed INTEGER NULL;

GO

ALTER TABLE batches ADD wake_count INTEGER NULL;

GO

ALTER TABLE batches ADD join_count INTEGER NULL;

GO

ALTER TABLE batch_members ADD is_pilot BIT NULL;

GO

ALTER TABLE batch_members ADD joined_no INTEGER NULL;

GO

ALTER TABLE batch_members ADD refreshed_at DATETIME2(6) NULL;

GO

ALTER TABLE phase_executions ADD member_count INTEGER NULL;

GO

ALTER TABLE phase_executions ADD pilot_done_at DATETIME2(6) NULL;

GO

ALTER TABLE phase_executions ADD late_after DATETIME2(6) NULL;

GO

ALTER TABLE phase_executions ADD woken_at DATETIME2(6) NULL;

GO

ALTER TABLE step_executions ADD holds_place BIT NULL;

GO

UPDATE batches SET wake_count = (SELECT MAX(id) FROM gates);

GO

CREATE INDEX ix_step_executions_places ON step_executions (phase_execution_id, batch_member_id) WHERE holds_place = 1;

GO

CREATE INDEX ix_gates_phase ON gates (phase_execution_id) WHERE phase_execution_id IS NOT NULL;

GO

CREATE INDEX ix_batch_members_pilots ON batch_members (batch_id, id) WHERE is_pilot = 1;

GO

CREATE TABLE approvals (
    id BIGINT NOT NULL IDENTITY,
    batch_id BIGINT NOT NULL,
    subject NVARCHAR(20) NOT NULL,
    phase_execution_id BIGINT NULL,
    hold_key NVARCHAR(64) NULL,
    runbook_version INTEGER NOT NULL,
    batch_start_time DATETIME2(6) NULL,
    digest NVARCHAR(100) NOT NULL,
    covered_after INTEGER NULL,
    covered_no INTEGER NOT NULL,
    members INTEGER NOT NULL,
    decision NVARCHAR(20) NOT NULL,
    signed_by NVARCHAR(200) NOT NULL,
    roles NVARCHAR(200) NOT NULL,
    is_signed_in BIT NOT NULL,
    signed_at DATETIME2(6) NOT NULL,
    reason NVARCHAR(max) NULL,
    withdrawn_at DATETIME2(6) NULL,
    used_at DATETIME2(6) NULL,
    CONSTRAINT pk_approvals PRIMARY KEY (id),
    CONSTRAINT ck_approvals_subject CHECK (subject = 'hold' OR subject = 'init' OR subject = 'phase'),
    CONSTRAINT ck_approvals_decision CHECK (decision = 'approve' OR decision = 'reject'),
    CONSTRAINT fk_approvals_batch_id FOREIGN KEY(batch_id) REFERENCES batches (id)
);

GO

CREATE INDEX ix_approvals_batch_id ON approvals (batch_id);

GO

UPDATE alembic_version SET version_num='0017' WHERE alembic_version.version_num = '0016';

GO

COMMIT;

GO

