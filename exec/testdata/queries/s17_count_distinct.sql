-- S17: distinct values are counted over all files together, however they are read.
-- file in/p0.csv
--|30
--|40
-- file in/p1.csv
--|30
-- file in/p2.csv
--|40
CREATE TABLE s (v BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/in', 'format' = 'csv');
SELECT COUNT(DISTINCT v) AS d, COUNT(v) AS n FROM s;
