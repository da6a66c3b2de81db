-- Rejected rows of a table without files: the row's number says which.
-- on_row_error keep
CREATE TABLE g (i BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '3000', 'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.i.end' = '2999');
SELECT SUM(1000 / (i % 300)) AS s, COUNT(*) AS n FROM g;
