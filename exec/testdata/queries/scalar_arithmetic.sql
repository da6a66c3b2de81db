-- Arithmetic of integers, decimals and doubles, with NULLs.
-- file t.csv
--|1,7,2,2.50,0.5,true,Weir
--|2,-7,3,-2.50,-1.5,false,  two words
--|3,0,-5,0.05,1e300,,añb
--|4,,4,,,true,
--|5,2147483647,1,99999999.99,-0,false,""
--|6,9,,12345678.45,2.5,true,100%_x
CREATE TABLE t (id INT, i INT, j INT, m DECIMAL(10, 2), d DOUBLE, b BOOLEAN, s STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.csv', 'format' = 'csv');
SELECT id, i + j AS a, CAST(i AS BIGINT) * j AS b, i / j AS c, i % j AS d, -i AS e, +j AS f, m + i AS g, m - m AS h, m * m AS k, m * 2 AS l, d + i AS o, d * j AS p, d - d AS q FROM t WHERE id <> 5;
