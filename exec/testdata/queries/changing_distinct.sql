-- DISTINCT in aggregates over rows that change: a value is there while some row has it.
-- file t.csv
--|1,a,10,true,0.5
--|2,a,,false,1e150
--|3,b,9223372036854775807,true,1e150
--|4,b,9223372036854775807,true,-1e150
--|5,,5,,
--|6,,5,false,0
--|7,c,-9223372036854775808,,Infinity
--|8,c,-9223372036854775808,,1
--|9,d,,true,-Infinity
--|10,d,,true,Infinity
--|11,a,10,true,NaN
--|12,e,1,true,2
CREATE TABLE t (id INT, k STRING, v BIGINT, b BOOLEAN, d DOUBLE) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.csv', 'format' = 'csv');
SELECT COUNT(DISTINCT n) AS c, SUM(DISTINCT n) AS s, AVG(DISTINCT n) AS a, COUNT(DISTINCT v) AS u, SUM(DISTINCT v) AS w, COUNT(*) AS groups FROM (SELECT k, COUNT(*) AS n, MAX(v) AS v FROM t GROUP BY k);
