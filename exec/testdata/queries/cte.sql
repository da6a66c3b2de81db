-- A common table expression, read twice.
CREATE TABLE g (i BIGINT, s STRING, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.v.kind' = 'random', 'fields.v.min' = '-50', 'fields.v.max' = '50');
WITH c AS (SELECT s, COUNT(*) AS n FROM g GROUP BY s) SELECT s, n FROM c WHERE n > 0 UNION ALL SELECT 'all', n FROM c;
