-- Grouping sets over rows that change.
CREATE TABLE g (i BIGINT, s STRING, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.v.kind' = 'random', 'fields.v.min' = '-50', 'fields.v.max' = '50');
SELECT k % 4 AS q, COUNT(*) AS n, SUM(c) AS s, MAX(c) AS most FROM (SELECT v AS k, COUNT(*) AS c FROM g GROUP BY v) GROUP BY ROLLUP (k % 4);
