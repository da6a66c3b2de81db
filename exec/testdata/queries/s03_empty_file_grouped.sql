-- S03: an empty file has no groups.
-- file s.json
CREATE TABLE s (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT k, COUNT(*) AS n, SUM(v) AS t FROM s WHERE v > 100 GROUP BY k;
