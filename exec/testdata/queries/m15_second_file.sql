-- M15: a skipped row is found by its file and line, with its reason and text.
-- on_row_error skip
-- file in/1.csv
--|a,1
--|b,1
-- file in/2.csv
--|a,1
--|a,1
--|a,1
--|a,1
--|a,1
--|a,1
--|<b>a</b>,one
--|a,1
-- file in/3.csv
--|a,1
CREATE TABLE s (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/in', 'format' = 'csv');
SELECT k, COUNT(*) AS n, SUM(v) AS v FROM s GROUP BY k;
