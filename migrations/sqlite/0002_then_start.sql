-- +goose Up

-- What a stop under way is followed by: a restore is a stop and a start, and its second
-- half must outlive the server that was asked. JSON; NULL: nothing.
ALTER TABLE jobs ADD COLUMN then_start TEXT;

-- +goose Down
ALTER TABLE jobs DROP COLUMN then_start;
