-- CASE in both forms, COALESCE, NULLIF, GREATEST and LEAST compute only what they need.
-- file t.csv
--|1,7,2,2.50,0.5,true,Weir
--|2,-7,3,-2.50,-1.5,false,  two words
--|3,0,-5,0.05,1e300,,añb
--|4,,4,,,true,
--|5,2147483647,1,99999999.99,-0,false,""
--|6,9,,12345678.45,2.5,true,100%_x
CREATE TABLE t (id INT, i INT, j INT, m DECIMAL(10, 2), d DOUBLE, b BOOLEAN, s STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.csv', 'format' = 'csv');
SELECT id, CASE WHEN i > 0 THEN 'more' WHEN i < 0 THEN 'less' END AS a, CASE i WHEN 0 THEN 0 ELSE 100 / i END AS b, COALESCE(i, j, 1 / (id - id)) AS c, NULLIF(j, 4) AS d, GREATEST(i, j, 0) AS e, LEAST(m, d) AS f, COALESCE(s, 'none') AS g, CASE WHEN b THEN m ELSE i END AS h, j / NULLIF(i, 0) AS k FROM t;
