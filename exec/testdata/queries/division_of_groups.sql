-- Only final counts are divided by: one that is 60 on its way fails nothing.
CREATE TABLE g (i BIGINT, s STRING, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.v.kind' = 'random', 'fields.v.min' = '-50', 'fields.v.max' = '50');
SELECT v, 10 / (COUNT(*) - 60) AS q, MAX(i) / (SUM(v) + 1000000) AS r FROM g GROUP BY v HAVING 1 / (COUNT(*) - 50) = 0;
