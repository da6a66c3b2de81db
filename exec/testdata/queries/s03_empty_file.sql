-- S03: an empty file is an input without rows.
-- file s.json
CREATE TABLE s (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT count(*) AS n, sum(v) AS t FROM s WHERE v > 100;
