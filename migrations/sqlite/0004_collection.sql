-- +goose Up

-- Clean-up is driven by the rows: what is given up is marked, its objects go, and then
-- the row says that they are gone.
ALTER TABLE checkpoints ADD COLUMN collected BOOLEAN NOT NULL DEFAULT FALSE;
-- The job's base when a checkpoint began: what it may reuse of it must not go before it
-- has ended.
ALTER TABLE checkpoints ADD COLUMN reuses BIGINT NOT NULL DEFAULT 0;
-- The folder of an attempt that is over was looked through.
ALTER TABLE attempts ADD COLUMN swept BOOLEAN NOT NULL DEFAULT FALSE;
-- Nothing of a deleted job is left but its savepoints.
ALTER TABLE jobs ADD COLUMN purged_at TEXT;

CREATE INDEX checkpoints_given_up ON checkpoints (job, id) WHERE NOT collected AND (discarded OR status = 'failed' OR status = 'aborted');
CREATE INDEX checkpoints_kept ON checkpoints (job, id) WHERE status = 'completed' AND NOT discarded;
CREATE INDEX attempts_unswept ON attempts (job, number) WHERE NOT swept;

-- +goose Down
DROP INDEX attempts_unswept;
DROP INDEX checkpoints_kept;
DROP INDEX checkpoints_given_up;
ALTER TABLE jobs DROP COLUMN purged_at;
ALTER TABLE attempts DROP COLUMN swept;
ALTER TABLE checkpoints DROP COLUMN reuses;
ALTER TABLE checkpoints DROP COLUMN collected;
