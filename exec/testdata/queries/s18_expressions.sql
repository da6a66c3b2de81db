-- S18: expressions are matched by structure; names inside are input columns.
-- file s.csv
--|10
--|10
--|11
CREATE TABLE s (x BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.csv', 'format' = 'csv');
SELECT x - 1 AS p, x - 2 AS q, CASE WHEN x = 10 THEN 'ten' ELSE 'no' END AS x, COUNT(*) AS n FROM s
GROUP BY x - 1, x - 2, CASE WHEN x = 10 THEN 'ten' ELSE 'no' END;
