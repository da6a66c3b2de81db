-- IN, BETWEEN, LIKE and ILIKE, and their opposites.
-- file t.csv
--|1,7,2,2.50,0.5,true,Weir
--|2,-7,3,-2.50,-1.5,false,  two words
--|3,0,-5,0.05,1e300,,añb
--|4,,4,,,true,
--|5,2147483647,1,99999999.99,-0,false,""
--|6,9,,12345678.45,2.5,true,100%_x
CREATE TABLE t (id INT, i INT, j INT, m DECIMAL(10, 2), d DOUBLE, b BOOLEAN, s STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.csv', 'format' = 'csv');
SELECT id, i IN (7, 0) AS a, i NOT IN (7, NULL) AS b, s IN ('', 'Weir') AS c, i BETWEEN -7 AND 0 AS d, m NOT BETWEEN 0 AND 3 AS e, s LIKE 'W%' AS f, s LIKE '%\%\_x' AS g, s NOT LIKE '_____' AS h, s ILIKE 'WE_R' AS k, s LIKE 'a_b' AS l, s LIKE '100!%%' ESCAPE '!' AS o FROM t;
