-- Grouping sets over rows that are taken back.
-- file t.csv
--|1,a,10
--|2,a,
--|3,b,30
--|4,,40
--|5,b,5
--|6,c,7
--|0,a,1
CREATE TABLE t (a INT, s STRING, b BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.csv', 'format' = 'csv');
SELECT s, n, COUNT(*) AS c, SUM(n) AS sum FROM (SELECT s, a % 2 AS o, COUNT(*) AS n FROM t GROUP BY s, a % 2) GROUP BY ROLLUP (s, n);
