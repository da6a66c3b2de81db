-- Keys shown in another order than they group by; some not shown, some twice.
CREATE TABLE g (i BIGINT, d DOUBLE, s STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.d.kind' = 'sequence', 'fields.d.start' = '0');
SELECT count(*) AS n, s, i % 3 AS m, s AS s2, sum(d) AS t, sum(i) AS u FROM g GROUP BY i % 3, s, i % 2;
