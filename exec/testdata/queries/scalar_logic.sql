-- AND, OR and NOT of three truth values.
-- file t.csv
--|1,7,2,2.50,0.5,true,Weir
--|2,-7,3,-2.50,-1.5,false,  two words
--|3,0,-5,0.05,1e300,,añb
--|4,,4,,,true,
--|5,2147483647,1,99999999.99,-0,false,""
--|6,9,,12345678.45,2.5,true,100%_x
CREATE TABLE t (id INT, i INT, j INT, m DECIMAL(10, 2), d DOUBLE, b BOOLEAN, s STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.csv', 'format' = 'csv');
SELECT id, b AND i > 0 AS a, b OR i > 0 AS o, NOT b AS n, b AND NULL AS x, b OR NULL AS y, b = (i > 0) AS e FROM t WHERE b OR NOT b OR b IS NULL;
