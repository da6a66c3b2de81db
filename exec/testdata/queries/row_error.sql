-- A row that cannot be computed fails the job, by name, for good.
-- file s.csv
--|1,2
--|2,0
CREATE TABLE s (x BIGINT, y BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.csv', 'format' = 'csv');
SELECT x / y AS q FROM s;
