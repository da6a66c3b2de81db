-- +goose Up

-- The database's clock. Every time that Weir compares or records comes from here.
CREATE VIEW weir_clock AS SELECT clock_timestamp() AS now;

CREATE TABLE jobs (
    id                       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name                     TEXT COLLATE "C" NOT NULL,
    sql                      TEXT NOT NULL,
    plan                     TEXT,
    parallelism              BIGINT NOT NULL,
    max_parallelism          BIGINT NOT NULL,
    checkpoint               TEXT,
    restart                  TEXT,
    on_row_error             TEXT COLLATE "C" NOT NULL,
    shard                    BIGINT NOT NULL,
    desired                  TEXT COLLATE "C" NOT NULL,
    status                   TEXT COLLATE "C" NOT NULL,
    attempt                  BIGINT NOT NULL,
    attempt_tag              TEXT COLLATE "C" NOT NULL,
    term                     BIGINT NOT NULL,
    base_job                 TEXT COLLATE "C" NOT NULL,
    base_checkpoint          BIGINT NOT NULL,
    restored_from_job        TEXT COLLATE "C" NOT NULL,
    restored_from_checkpoint BIGINT NOT NULL,
    stop_savepoint           TEXT COLLATE "C" NOT NULL,
    last_checkpoint          BIGINT NOT NULL,
    last_event               BIGINT NOT NULL,
    failure                  TEXT,
    idempotency_key          TEXT COLLATE "C",
    writes                   TEXT NOT NULL, -- tokens of the last deciding transactions
    created_at               TIMESTAMPTZ NOT NULL,
    started_at               TIMESTAMPTZ,
    ended_at                 TIMESTAMPTZ,
    deleted_at               TIMESTAMPTZ
);
CREATE UNIQUE INDEX jobs_name ON jobs (name) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX jobs_idempotency_key ON jobs (idempotency_key);
CREATE INDEX jobs_created ON jobs (created_at, id);
CREATE INDEX jobs_base ON jobs (base_job, base_checkpoint);

CREATE TABLE attempts (
    job                      TEXT COLLATE "C" NOT NULL REFERENCES jobs (id),
    number                   BIGINT NOT NULL,
    tag                      TEXT COLLATE "C" NOT NULL,
    term                     BIGINT NOT NULL,
    parallelism              BIGINT NOT NULL,
    restored_from_job        TEXT COLLATE "C" NOT NULL,
    restored_from_checkpoint BIGINT NOT NULL,
    started_at               TIMESTAMPTZ NOT NULL,
    running_at               TIMESTAMPTZ,
    ended_at                 TIMESTAMPTZ,
    ended_by                 TEXT COLLATE "C" NOT NULL,
    failure                  TEXT,
    PRIMARY KEY (job, number)
);

CREATE TABLE checkpoints (
    job          TEXT COLLATE "C" NOT NULL REFERENCES jobs (id),
    id           BIGINT NOT NULL,
    attempt      BIGINT NOT NULL,
    attempt_tag  TEXT COLLATE "C" NOT NULL,
    type         TEXT COLLATE "C" NOT NULL,
    status       TEXT COLLATE "C" NOT NULL,
    periodic     BOOLEAN NOT NULL,
    triggered_at TIMESTAMPTZ NOT NULL,
    completed_at TIMESTAMPTZ,
    state_bytes  BIGINT NOT NULL,
    new_bytes    BIGINT NOT NULL,
    manifest     TEXT COLLATE "C" NOT NULL,
    savepoint    TEXT COLLATE "C" NOT NULL,
    commits_open BOOLEAN NOT NULL,
    final        BOOLEAN NOT NULL,
    discarded    BOOLEAN NOT NULL,
    failure      TEXT,
    acks         TEXT,
    PRIMARY KEY (job, id)
);
CREATE INDEX checkpoints_open ON checkpoints (job) WHERE status = 'pending' OR commits_open;

CREATE TABLE savepoints (
    name         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    job          TEXT COLLATE "C" NOT NULL,
    job_name     TEXT COLLATE "C" NOT NULL,
    checkpoint   BIGINT NOT NULL,
    status       TEXT COLLATE "C" NOT NULL,
    manifest     TEXT COLLATE "C" NOT NULL,
    state_bytes  BIGINT NOT NULL,
    triggered_at TIMESTAMPTZ NOT NULL,
    completed_at TIMESTAMPTZ,
    failure      TEXT
);
CREATE UNIQUE INDEX savepoints_checkpoint ON savepoints (job, checkpoint);

CREATE TABLE pins (
    job        TEXT COLLATE "C" NOT NULL REFERENCES jobs (id),
    checkpoint BIGINT NOT NULL,
    holder     TEXT COLLATE "C" NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (job, checkpoint, holder)
);

CREATE TABLE events (
    job     TEXT COLLATE "C" NOT NULL REFERENCES jobs (id),
    seq     BIGINT NOT NULL,
    at      TIMESTAMPTZ NOT NULL,
    kind    TEXT COLLATE "C" NOT NULL,
    attempt BIGINT NOT NULL,
    message TEXT NOT NULL,
    data    TEXT,
    PRIMARY KEY (job, seq)
);

CREATE TABLE tables (
    key        TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- the name in lower case
    name       TEXT COLLATE "C" NOT NULL,
    sql        TEXT NOT NULL,
    columns    TEXT,
    connector  TEXT COLLATE "C" NOT NULL,
    created_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE leases (
    shard      BIGINT NOT NULL PRIMARY KEY,
    holder     TEXT COLLATE "C" NOT NULL,
    term       BIGINT NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL
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
