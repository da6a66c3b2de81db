-- +goose Up

-- The output that the checkpoint had still to make visible was given up, for good: who
-- starts from its snapshot, or from one that holds the same segments, leaves them out.
ALTER TABLE checkpoints ADD COLUMN output_given_up BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX checkpoints_output_given_up ON checkpoints (job, id) WHERE output_given_up;

-- +goose Down
DROP INDEX checkpoints_output_given_up;
ALTER TABLE checkpoints DROP COLUMN output_given_up;
