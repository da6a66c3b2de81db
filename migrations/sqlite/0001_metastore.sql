-- +goose Up

-- The database's clock. Every time that Weir compares or records comes from here.
CREATE VIEW weir_clock AS SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z' AS now;

CREATE TABLE jobs (
    id                       TEXT    NOT NULL PRIMARY KEY,
    name                     TEXT    NOT NULL,
    sql                      TEXT    NOT NULL,
    plan                     TEXT,
    parallelism              BIGINT  NOT NULL,
    max_parallelism          BIGINT  NOT NULL,
    checkpoint               TEXT,
    restart                  TEXT,
    on_row_error             TEXT    NOT NULL,
    shard                    BIGINT  NOT NULL,
    desired                  TEXT    NOT NULL,
    status                   TEXT    NOT NULL,
    attempt                  BIGINT  NOT NULL,
    attempt_tag              TEXT    NOT NULL,
    term                     BIGINT  NOT NULL,
    base_job                 TEXT    NOT NULL,
    base_checkpoint          BIGINT  NOT NULL,
    restored_from_job        TEXT    NOT NULL,
    restored_from_checkpoint BIGINT  NOT NULL,
    stop_savepoint           TEXT    NOT NULL,
    last_checkpoint          BIGINT  NOT NULL,
    last_event               BIGINT  NOT NULL,
    failure                  TEXT,
    idempotency_key          TEXT,
    writes                   TEXT    NOT NULL, -- tokens of the last deciding transactions
    created_at               TEXT    NOT NULL,
    started_at               TEXT,
    ended_at                 TEXT,
    deleted_at               TEXT
);
CREATE UNIQUE INDEX jobs_name ON jobs (name) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX jobs_idempotency_key ON jobs (idempotency_key);
CREATE INDEX jobs_created ON jobs (created_at, id);
CREATE INDEX jobs_base ON jobs (base_job, base_checkpoint);

CREATE TABLE attempts (
    job                      TEXT   NOT NULL REFERENCES jobs (id),
    number                   BIGINT NOT NULL,
    tag                      TEXT   NOT NULL,
    term                     BIGINT NOT NULL,
    parallelism              BIGINT NOT NULL,
    restored_from_job        TEXT   NOT NULL,
    restored_from_checkpoint BIGINT NOT NULL,
    started_at               TEXT   NOT NULL,
    running_at               TEXT,
    ended_at                 TEXT,
    ended_by                 TEXT   NOT NULL,
    failure                  TEXT,
    PRIMARY KEY (job, number)
);

CREATE TABLE checkpoints (
    job          TEXT    NOT NULL REFERENCES jobs (id),
    id           BIGINT  NOT NULL,
    attempt      BIGINT  NOT NULL,
    attempt_tag  TEXT    NOT NULL,
    type         TEXT    NOT NULL,
    status       TEXT    NOT NULL,
    periodic     BOOLEAN NOT NULL,
    triggered_at TEXT    NOT NULL,
    completed_at TEXT,
    state_bytes  BIGINT  NOT NULL,
    new_bytes    BIGINT  NOT NULL,
    manifest     TEXT    NOT NULL,
    savepoint    TEXT    NOT NULL,
    commits_open BOOLEAN NOT NULL,
    final        BOOLEAN NOT NULL,
    discarded    BOOLEAN NOT NULL,
    failure      TEXT,
    acks         TEXT,
    PRIMARY KEY (job, id)
);
CREATE INDEX checkpoints_open ON checkpoints (job) WHERE status = 'pending' OR commits_open;

CREATE TABLE savepoints (
    name         TEXT   NOT NULL PRIMARY KEY,
    job          TEXT   NOT NULL,
    job_name     TEXT   NOT NULL,
    checkpoint   BIGINT NOT NULL,
    status       TEXT   NOT NULL,
    manifest     TEXT   NOT NULL,
    state_bytes  BIGINT NOT NULL,
    triggered_at TEXT   NOT NULL,
    completed_at TEXT,
    failure      TEXT
);
CREATE UNIQUE INDEX savepoints_checkpoint ON savepoints (job, checkpoint);

CREATE TABLE pins (
    job        TEXT   NOT NULL REFERENCES jobs (id),
    checkpoint BIGINT NOT NULL,
    holder     TEXT   NOT NULL,
    expires_at TEXT   NOT NULL,
    PRIMARY KEY (job, checkpoint, holder)
);

CREATE TABLE events (
    job     TEXT   NOT NULL REFERENCES jobs (id),
    seq     BIGINT NOT NULL,
    at      TEXT   NOT NULL,
    kind    TEXT   NOT NULL,
    attempt BIGINT NOT NULL,
    message TEXT   NOT NULL,
    data    TEXT,
    PRIMARY KEY (job, seq)
);

CREATE TABLE tables (
    key        TEXT NOT NULL PRIMARY KEY, -- the name in lower case
    name       TEXT NOT NULL,
    sql        TEXT NOT NULL,
    columns    TEXT,
    connector  TEXT NOT NULL,
    created_at TEXT NOT NULL
);

CREATE TABLE leases (
    shard      BIGINT NOT NULL PRIMARY KEY,
    holder     TEXT   NOT NULL,
    term       BIGINT NOT NULL,
    expires_at TEXT   NOT NULL
);

-- +goose Down
DROP TABLE leases;
DROP TABLE tables;
DROP TABLE events;
DROP TABLE pins;
DROP TABLE savepoints;
DROP TABLE checkpoints;
DROP TABLE attempts;
DROP TABLE jobs;
DROP VIEW weir_clock;
