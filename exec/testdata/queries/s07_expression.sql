-- S07: an expression over a key is legal.
-- file s.csv
--|1,10
--|2,10
--|3,20
CREATE TABLE s (x BIGINT, y BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.csv', 'format' = 'csv');
SELECT y + 1 AS y1, count(*) AS n FROM s GROUP BY y;
