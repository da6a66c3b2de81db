-- S07: a column that is neither grouped nor aggregated.
-- file s.csv
--|1,10
--|2,10
--|3,20
CREATE TABLE s (x BIGINT, y BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.csv', 'format' = 'csv');
SELECT x, count(*) AS n FROM s GROUP BY y;
