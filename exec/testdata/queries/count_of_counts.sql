-- A count of counts: each change of the inner one takes a row back.
CREATE TABLE g (i BIGINT, s STRING, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.v.kind' = 'random', 'fields.v.min' = '-50', 'fields.v.max' = '50');
SELECT n, COUNT(*) AS groups, MIN(k) AS least, MAX(k) AS most FROM (SELECT v AS k, COUNT(*) AS n FROM g GROUP BY v) GROUP BY n;
