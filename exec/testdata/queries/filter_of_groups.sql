-- FILTER and WHERE over rows that change.
CREATE TABLE g (i BIGINT, s STRING, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.v.kind' = 'random', 'fields.v.min' = '-50', 'fields.v.max' = '50');
SELECT COUNT(*) FILTER (WHERE n > 90) AS big, SUM(n) FILTER (WHERE n <= 90) AS small, MAX(k) FILTER (WHERE n = 89) AS at89 FROM (SELECT v AS k, COUNT(*) AS n FROM g GROUP BY v) WHERE k <> 0;
