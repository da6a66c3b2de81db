-- Groups pass HAVING and fall out of it again while rows come.
CREATE TABLE g (i BIGINT, s STRING, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.v.kind' = 'random', 'fields.v.min' = '-50', 'fields.v.max' = '50');
SELECT i % 100 AS k, SUM(v) AS s FROM g GROUP BY i % 100 HAVING SUM(v) BETWEEN -100 AND 100;
