-- CAST rounds and reads as PostgreSQL does.
-- file t.csv
--|1,7,2,2.50,0.5,true,Weir
--|2,-7,3,-2.50,-1.5,false,  two words
--|3,0,-5,0.05,1e300,,añb
--|4,,4,,,true,
--|5,2147483647,1,99999999.99,-0,false,""
--|6,9,,12345678.45,2.5,true,100%_x
CREATE TABLE t (id INT, i INT, j INT, m DECIMAL(10, 2), d DOUBLE, b BOOLEAN, s STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.csv', 'format' = 'csv');
SELECT id, CAST(i AS BIGINT) AS a, CAST(m AS INT) AS b, CAST(m AS DECIMAL(12, 1)) AS c, CAST(i AS STRING) AS e, CAST(m AS STRING) AS f, CAST(b AS STRING) AS g, CAST(b AS INT) AS h, CAST(i AS DECIMAL(12, 2)) AS k, m::DOUBLE AS l, CAST(' 12 ' AS INT) + id AS o, CAST('t' AS BOOLEAN) AS p, CAST(CAST(id AS DOUBLE) + 0.5 AS INT) AS q FROM t;
