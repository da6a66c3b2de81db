-- CUBE over an exchange.
CREATE TABLE g (i BIGINT, s STRING, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.v.kind' = 'random', 'fields.v.min' = '-50', 'fields.v.max' = '50');
SELECT s, i % 4 AS k, COUNT(*) AS n, SUM(v) AS t, MIN(v) AS least FROM g GROUP BY CUBE (s, i % 4);
