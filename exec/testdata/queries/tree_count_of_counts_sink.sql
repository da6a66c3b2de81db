-- Groups of groups, written once.
-- file t.csv
--|1,a,10
--|2,a,
--|3,b,30
--|4,,40
--|5,b,5
--|6,c,7
--|0,a,1
CREATE TABLE t (a INT, s STRING, b BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.csv', 'format' = 'csv');
CREATE TABLE o (s STRING, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/out/o', 'format' = 'csv');
CREATE TABLE p (s STRING, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/out/p', 'format' = 'csv');
INSERT INTO o SELECT 'n', COUNT(*) FROM (SELECT s, COUNT(*) AS n FROM t GROUP BY s) WHERE n > 1;
