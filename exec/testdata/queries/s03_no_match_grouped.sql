-- S03: with GROUP BY no rows.
-- file s.json
--|{"k":"a","v":1}
--|{"k":"b","v":2}
--|{"k":"c","v":3}
CREATE TABLE s (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT k, count(*) AS n, sum(v) AS t FROM s WHERE v > 100 GROUP BY k;
