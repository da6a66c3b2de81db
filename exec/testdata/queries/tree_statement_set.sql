-- Two sinks, one reading.
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
EXECUTE STATEMENT SET BEGIN INSERT INTO o SELECT s, b FROM t WHERE a > 2; INSERT INTO p SELECT s, COUNT(*) FROM t GROUP BY s; END;
