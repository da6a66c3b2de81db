-- Rows without a key, many of them equal, over a rescale.
CREATE TABLE g (i BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000', 'fields.i.kind' = 'sequence', 'fields.i.start' = '0');
SELECT i / 4 AS q, i % 4 = 1 AS b FROM g WHERE i < 40 OR i > 8980;
