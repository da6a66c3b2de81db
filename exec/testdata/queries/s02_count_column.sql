-- S02: count(v) skips NULL and is never NULL.
-- file s.json
--|{"k":"a","v":1}
--|{"k":"a","v":null}
--|{"k":"a","v":1}
--|{"k":"b","v":null}
--|{"k":"b"}
CREATE TABLE s (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT k, count(*) AS a, count(v) AS b, sum(v) AS t FROM s GROUP BY k;
