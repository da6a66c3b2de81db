-- Functions of numbers: halves go away from zero in decimals, to even in doubles.
-- file t.csv
--|1,7,2,2.50,0.5,true,Weir
--|2,-7,3,-2.50,-1.5,false,  two words
--|3,0,-5,0.05,1e300,,añb
--|4,,4,,,true,
--|5,2147483647,1,99999999.99,-0,false,""
--|6,9,,12345678.45,2.5,true,100%_x
CREATE TABLE t (id INT, i INT, j INT, m DECIMAL(10, 2), d DOUBLE, b BOOLEAN, s STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.csv', 'format' = 'csv');
SELECT id, ABS(m) AS a, CEIL(m) AS b, FLOOR(m) AS c, ROUND(m) AS d, ROUND(m, 1) AS e, ROUND(d) AS f, MOD(j, 3) AS g, SIGN(m) AS h, TRUNC(m, 1) AS k, CEIL(d) AS l, FLOOR(d) AS o, ABS(j) AS p, POWER(j, 2) AS q, SQRT(ABS(j)) AS r, ROUND(m, -1) AS v FROM t;
