-- S06: an aggregate cannot be grouped by.
-- file s.csv
--|10
--|10
--|20
CREATE TABLE s (k BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.csv', 'format' = 'csv');
SELECT k, count(*) AS n FROM s GROUP BY 2;
