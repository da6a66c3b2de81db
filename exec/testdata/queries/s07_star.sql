-- S07: the same by a star.
-- file s.csv
--|1,10
--|2,10
--|3,20
CREATE TABLE s (x BIGINT, y BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.csv', 'format' = 'csv');
SELECT * FROM s GROUP BY y;
