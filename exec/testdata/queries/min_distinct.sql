-- DISTINCT where it changes nothing, beside plain aggregates and over rows that change.
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
SELECT MIN(DISTINCT v) AS a, MAX(DISTINCT k) AS c, BOOL_AND(DISTINCT e) AS d, BOOL_OR(DISTINCT v = 2) AS f, COUNT(DISTINCT e) AS g FROM (SELECT k, COUNT(v) AS v, BOOL_AND(DISTINCT b) AS e, MIN(DISTINCT d) AS m FROM t GROUP BY k) WHERE m IS NOT NULL OR v > 0;
