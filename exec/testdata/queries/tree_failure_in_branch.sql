-- file t.csv
--|1,a,10
--|2,a,
--|3,b,30
--|4,,40
--|5,b,5
--|6,c,7
--|0,a,1
CREATE TABLE t (a INT, s STRING, b BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.csv', 'format' = 'csv');
SELECT CASE WHEN a = 0 THEN -1 ELSE x END AS y FROM (SELECT a, 10 / a AS x FROM t);
