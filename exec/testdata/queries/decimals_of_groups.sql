-- The same of decimals and doubles.
CREATE TABLE g (i BIGINT, s STRING, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.v.kind' = 'random', 'fields.v.min' = '-50', 'fields.v.max' = '50');
SELECT k % 3 AS r, MIN(m) AS least, MAX(m) AS most, AVG(m) AS a, SUM(m) AS s, COUNT(DISTINCT m) AS u, MIN(d) AS ld, MAX(d) AS md, SUM(d) AS sd FROM (SELECT v AS k, CAST(SUM(i) AS DECIMAL(20, 2)) AS m, CAST(SUM(v) AS DOUBLE) / 4 AS d FROM g GROUP BY v) GROUP BY k % 3;
