-- MIN and MAX of texts that change and share their beginnings.
CREATE TABLE g (i BIGINT, s STRING, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.v.kind' = 'random', 'fields.v.min' = '-50', 'fields.v.max' = '50');
SELECT k % 3 AS r, MIN(t) AS least, MAX(t) AS most, COUNT(DISTINCT t) AS u FROM (SELECT v AS k, 'a long beginning ' || CAST(COUNT(*) AS STRING) AS t FROM g GROUP BY v) GROUP BY k % 3;
