-- +goose Up

-- What a history without end is asked for: why (reason, that of failure), how long
-- (took_us, microseconds from trigger to end), and what its detail said in one sentence.
ALTER TABLE checkpoints ADD COLUMN committed_at TEXT;
ALTER TABLE checkpoints ADD COLUMN took_us BIGINT NOT NULL DEFAULT 0;
ALTER TABLE checkpoints ADD COLUMN reason TEXT NOT NULL DEFAULT '';
ALTER TABLE checkpoints ADD COLUMN path TEXT NOT NULL DEFAULT '';
ALTER TABLE checkpoints ADD COLUMN thinned BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE checkpoints SET
    took_us = COALESCE(MAX(0, (CAST(strftime('%s', completed_at) AS INTEGER) - CAST(strftime('%s', triggered_at) AS INTEGER)) * 1000000
        + CAST(substr(completed_at, 21, 6) AS INTEGER) - CAST(substr(triggered_at, 21, 6) AS INTEGER)), 0),
    reason = COALESCE(json_extract(failure, '$.reason'), '');
CREATE INDEX checkpoints_status ON checkpoints (job, status, id);
-- What a summary reads, without the rows, which carry their detail.
CREATE INDEX checkpoints_figures ON checkpoints (job, status, took_us, state_bytes, new_bytes);
CREATE INDEX checkpoints_type ON checkpoints (job, type, id);
CREATE INDEX checkpoints_attempt ON checkpoints (job, attempt, id);
CREATE INDEX checkpoints_reason ON checkpoints (job, reason, id) WHERE reason <> '';
CREATE INDEX checkpoints_triggered ON checkpoints (job, triggered_at);
CREATE INDEX checkpoints_detailed ON checkpoints (completed_at) WHERE acks IS NOT NULL;

-- +goose Down
DROP INDEX checkpoints_detailed;
DROP INDEX checkpoints_triggered;
DROP INDEX checkpoints_reason;
DROP INDEX checkpoints_attempt;
DROP INDEX checkpoints_type;
DROP INDEX checkpoints_figures;
DROP INDEX checkpoints_status;
ALTER TABLE checkpoints DROP COLUMN thinned;
ALTER TABLE checkpoints DROP COLUMN path;
ALTER TABLE checkpoints DROP COLUMN reason;
ALTER TABLE checkpoints DROP COLUMN took_us;
ALTER TABLE checkpoints DROP COLUMN committed_at;
