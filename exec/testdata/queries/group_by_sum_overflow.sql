-- SUM(INT) is a BIGINT and SUM(BIGINT) exact: neither wraps.
-- file s.csv
--|9223372036854775807,2147483647
--|9223372036854775807,2147483647
--|9223372036854775807,2147483647
CREATE TABLE s (l BIGINT, i INT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.csv', 'format' = 'csv');
SELECT sum(l) AS l, sum(i) AS i, count(*) AS n FROM s;
