-- A union of results that change, and an aggregate over it.
CREATE TABLE g (i BIGINT, s STRING, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.v.kind' = 'random', 'fields.v.min' = '-50', 'fields.v.max' = '50');
SELECT n % 4 AS r, COUNT(*) AS c FROM (SELECT v AS k, COUNT(*) AS n FROM g GROUP BY v UNION ALL SELECT i % 9, COUNT(*) FROM g GROUP BY i % 9) GROUP BY n % 4;
