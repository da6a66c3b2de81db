-- S06: a position names an output column.
-- file s.csv
--|10
--|10
--|20
CREATE TABLE s (k BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.csv', 'format' = 'csv');
SELECT k, count(*) AS n FROM s GROUP BY 1;
