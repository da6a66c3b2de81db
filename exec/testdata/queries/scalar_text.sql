-- Functions of texts count characters, not bytes.
-- file t.csv
--|1,7,2,2.50,0.5,true,Weir
--|2,-7,3,-2.50,-1.5,false,  two words
--|3,0,-5,0.05,1e300,,añb
--|4,,4,,,true,
--|5,2147483647,1,99999999.99,-0,false,""
--|6,9,,12345678.45,2.5,true,100%_x
CREATE TABLE t (id INT, i INT, j INT, m DECIMAL(10, 2), d DOUBLE, b BOOLEAN, s STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.csv', 'format' = 'csv');
SELECT id, LOWER(s) AS a, UPPER(s) AS b, TRIM(s) AS c, CHAR_LENGTH(s) AS d, OCTET_LENGTH(s) AS e, SUBSTRING(s FROM 2 FOR 3) AS f, SUBSTRING(s FROM 0 FOR 2) AS g, REPLACE(s, 'o', '0') AS h, POSITION('i' IN s) AS k, CONCAT(s, NULL, id) AS l, s || '|' || i AS o, LEFT(s, 2) AS p, RIGHT(s, -1) AS q, LPAD(s, 5, '*') AS r, REVERSE(s) AS v, CONCAT_WS('-', s, i, j) AS w, SPLIT_PART(s, ' ', 3) AS x, TRIM(BOTH 'Wr' FROM s) AS y FROM t;
