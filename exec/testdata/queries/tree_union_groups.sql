-- Groups over the rows of two subqueries of one table.
-- file t.csv
--|1,a,10
--|2,a,
--|3,b,30
--|4,,40
--|5,b,5
--|6,c,7
--|0,a,1
CREATE TABLE t (a INT, s STRING, b BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.csv', 'format' = 'csv');
SELECT x, COUNT(*) AS n, SUM(y) AS y FROM (SELECT s AS x, b AS y FROM t UNION ALL SELECT 'a', a FROM t WHERE a > 2) GROUP BY x;
