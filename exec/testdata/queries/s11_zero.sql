-- S11: -0 and 0 are one group, shown as 0.
-- file s.json
--|{"k":0.0}
--|{"k":-0.0}
--|{"k":0}
--|{"k":1e0}
--|{"k":1.0}
CREATE TABLE s (k DOUBLE) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT k, count(*) AS n FROM s GROUP BY k;
