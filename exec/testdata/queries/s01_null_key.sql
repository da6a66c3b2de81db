-- S01: NULL is one group, and not 0, -1 or ''.
-- file s.json
--|{"k":0}
--|{"k":null}
--|{"k":7}
--|{}
--|{"k":-1}
--|{"k":7}
CREATE TABLE s (k BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT k, count(*) AS n FROM s GROUP BY k;
