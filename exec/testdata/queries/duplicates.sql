-- A result without a key keeps equal rows apart.
-- file s.csv
--|1,a
--|1,a
--|2,b
--|1,a
CREATE TABLE s (x BIGINT, y STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.csv', 'format' = 'csv');
SELECT y, x + 1 AS z FROM s;
