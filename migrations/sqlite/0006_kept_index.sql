-- +goose Up

-- The old one named fewer columns than an index of the whole history, which SQLite took
-- instead: what is kept was looked for among all checkpoints there had ever been.
DROP INDEX checkpoints_kept;
CREATE INDEX checkpoints_kept ON checkpoints (job, status, id) WHERE status = 'completed' AND NOT discarded;

-- +goose Down
DROP INDEX checkpoints_kept;
CREATE INDEX checkpoints_kept ON checkpoints (job, id) WHERE status = 'completed' AND NOT discarded;
