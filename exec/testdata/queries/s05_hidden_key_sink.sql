-- S05, into files.
-- file s.csv
--|a
--|a
--|b
--|b
--|b
CREATE TABLE s (k STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.csv', 'format' = 'csv');
CREATE TABLE o (n BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/out', 'format' = 'csv');
INSERT INTO o SELECT count(*) FROM s GROUP BY k;
