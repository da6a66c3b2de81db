-- HAVING by a DISTINCT aggregate, and SELECT DISTINCT of aggregates.
CREATE TABLE g (i BIGINT, s STRING, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.v.kind' = 'random', 'fields.v.min' = '-50', 'fields.v.max' = '50');
SELECT DISTINCT COUNT(DISTINCT v) AS u FROM g GROUP BY i % 30 HAVING COUNT(DISTINCT s) = 3;
