-- A union of results that change, kept as it is: equal rows are counted.
CREATE TABLE g (i BIGINT, s STRING, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.v.kind' = 'random', 'fields.v.min' = '-50', 'fields.v.max' = '50');
SELECT s, COUNT(*) AS n FROM g GROUP BY s UNION ALL SELECT s, COUNT(*) FROM g WHERE v > 0 GROUP BY s UNION ALL SELECT s, COUNT(*) FROM g GROUP BY s;
