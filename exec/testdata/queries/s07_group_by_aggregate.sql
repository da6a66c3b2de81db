-- S07: an aggregate cannot be grouped by.
-- file s.csv
--|1,10
--|2,10
--|3,20
CREATE TABLE s (x BIGINT, y BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.csv', 'format' = 'csv');
SELECT count(*) AS n FROM s GROUP BY count(*);
