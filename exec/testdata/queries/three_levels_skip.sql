-- Rows that are skipped count in no level; what a level cannot compute is skipped there.
-- on_row_error skip
-- file t.csv
--|a,1
--|a,x
--|b,2
--|c,0
--|b,-2
CREATE TABLE t (k STRING, v INT) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.csv', 'format' = 'csv');
SELECT n, COUNT(*) AS c FROM (SELECT q, COUNT(*) AS n FROM (SELECT k, SUM(12 / v) AS q FROM t GROUP BY k) GROUP BY q) GROUP BY n;
