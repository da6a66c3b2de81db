-- FILTER over rows that change: a row enters and leaves what is counted.
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
SELECT COUNT(*) FILTER (WHERE n = 1) AS one, COUNT(*) FILTER (WHERE n > 1) AS more, SUM(n) FILTER (WHERE k > 'a') AS s, MAX(n) FILTER (WHERE k IS NULL) AS m, COUNT(DISTINCT n) FILTER (WHERE k IS NOT NULL) AS u FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k);
