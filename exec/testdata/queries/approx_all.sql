-- One sketch of all rows.
CREATE TABLE g (i BIGINT, s STRING, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.v.kind' = 'random', 'fields.v.min' = '-50', 'fields.v.max' = '50');
SELECT APPROX_COUNT_DISTINCT(i) AS a, APPROX_COUNT_DISTINCT(CAST(i AS STRING) || s) AS b, APPROX_COUNT_DISTINCT(CAST(i AS DOUBLE)) AS d FROM g;
