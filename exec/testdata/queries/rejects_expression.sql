-- Rows that cannot be computed are kept, with where they lie; the others are counted.
-- on_row_error keep
-- file n.csv
--|1,2
--|2,0
--|9,3
--|4,0
--|0,1
--|5,1
CREATE TABLE n (x BIGINT, y BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/n.csv', 'format' = 'csv');
SELECT x / y AS q, COUNT(*) AS n FROM n WHERE 90 / x > 9 GROUP BY x / y;
