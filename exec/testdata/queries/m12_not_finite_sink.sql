-- M12, into files: JSON has texts for what is no number of it.
-- file s.csv
--|a,1
--|a,-1
--|b,1
--|c,0
CREATE TABLE s (k STRING, v DOUBLE) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.csv', 'format' = 'csv');
CREATE TABLE o (k STRING, q DOUBLE) WITH ('connector' = 'filesystem', 'path' = '${dir}/out', 'format' = 'json');
INSERT INTO o SELECT k, SUM(v / 0) FROM s GROUP BY k;
