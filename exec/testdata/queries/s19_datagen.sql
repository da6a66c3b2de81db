-- S19: the last, partial batch counts too: 10007 rows over 7 keys.
CREATE TABLE g (i BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '10007', 'fields.i.kind' = 'sequence', 'fields.i.start' = '0');
SELECT i % 7 AS k, count(*) AS n FROM g GROUP BY i % 7;
