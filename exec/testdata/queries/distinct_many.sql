-- Distinct values in many groups and few, over an exchange.
CREATE TABLE g (i BIGINT, s STRING, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.v.kind' = 'random', 'fields.v.min' = '-50', 'fields.v.max' = '50');
SELECT s, i % 7 AS k, COUNT(DISTINCT v) AS u, SUM(DISTINCT v) AS d, COUNT(*) AS n, APPROX_COUNT_DISTINCT(v) AS a FROM g GROUP BY s, i % 7;
