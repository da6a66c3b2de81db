-- M05, in JSON.
-- file in/1.json
--|{"v":1,"k":"a"}
--|{"v":2,"k":"a"}
--:{"v":3,"k":"a"}
CREATE TABLE s (v INT, k STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/in', 'format' = 'json');
SELECT k, COUNT(*) AS n, SUM(v) AS v FROM s GROUP BY k;
