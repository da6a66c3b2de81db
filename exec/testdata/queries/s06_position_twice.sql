-- S06: two positions of one column.
-- file s.csv
--|10
--|10
--|20
CREATE TABLE s (k BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.csv', 'format' = 'csv');
SELECT k, k AS k2, count(*) AS n FROM s GROUP BY 1, 2;
