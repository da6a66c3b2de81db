-- Behind an aggregate the fault is the operator's: the final rows are those of bounded input.
-- on_row_error keep
-- file n.csv
--|a,1
--|b,2
--|a,3
CREATE TABLE n (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/n.csv', 'format' = 'csv');
CREATE TABLE o (k STRING, q BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/out', 'format' = 'csv');
INSERT INTO o SELECT k, 10 / (COUNT(*) - 1) FROM n GROUP BY k;
