-- A row that does not fit its type fails the job, naming file, line and column.
-- file s.json
--|{"k":"a","v":1}
--|{"k":"b","v":"x"}
CREATE TABLE s (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT k, sum(v) AS t FROM s GROUP BY k;
