-- Every aggregate that takes rows back, over sums that change.
CREATE TABLE g (i BIGINT, s STRING, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.v.kind' = 'random', 'fields.v.min' = '-50', 'fields.v.max' = '50');
SELECT k % 3 AS r, COUNT(*) AS n, SUM(s) AS s, AVG(s) AS a, MIN(s) AS least, MAX(s) AS most, COUNT(DISTINCT s) AS u, SUM(DISTINCT s) AS d, BOOL_AND(s > 0) AS every, BOOL_OR(s > 0) AS some, MIN(t) AS first FROM (SELECT i % 50 AS k, SUM(v) AS s, MAX(s) AS t FROM g GROUP BY i % 50) GROUP BY k % 3;
