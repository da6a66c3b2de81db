-- Comparisons, and those that are never NULL.
-- file t.csv
--|1,7,2,2.50,0.5,true,Weir
--|2,-7,3,-2.50,-1.5,false,  two words
--|3,0,-5,0.05,1e300,,añb
--|4,,4,,,true,
--|5,2147483647,1,99999999.99,-0,false,""
--|6,9,,12345678.45,2.5,true,100%_x
CREATE TABLE t (id INT, i INT, j INT, m DECIMAL(10, 2), d DOUBLE, b BOOLEAN, s STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.csv', 'format' = 'csv');
SELECT id, i < j AS a, i = j AS b, i <> 7 AS c, m >= 2.5 AS d, d > i AS e, s > 'W' AS f, i IS NULL AS g, i IS NOT NULL AS h, i IS DISTINCT FROM j AS k, i IS NOT DISTINCT FROM NULL AS l, b IS TRUE AS o, b IS NOT FALSE AS p, b IS UNKNOWN AS q, b > FALSE AS r FROM t;
