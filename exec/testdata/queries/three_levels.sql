-- Three levels of groups.
CREATE TABLE g (i BIGINT, s STRING, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.v.kind' = 'random', 'fields.v.min' = '-50', 'fields.v.max' = '50');
SELECT m, COUNT(*) AS n FROM (SELECT k % 5 AS m, MAX(s) AS top FROM (SELECT i % 40 AS k, SUM(v) AS s FROM g GROUP BY i % 40) GROUP BY k % 5) WHERE top > 0 GROUP BY m;
