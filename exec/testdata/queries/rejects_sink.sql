-- A sink gets the rows without faults, each rejected row is kept once.
-- on_row_error keep
-- file n.csv
--|1,2
--|2,0
--|9,3
--|"x
--|y",4
--|0,1
--|5,1
CREATE TABLE n (x BIGINT, y BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/n.csv', 'format' = 'csv');
CREATE TABLE o (q BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/out', 'format' = 'csv');
INSERT INTO o SELECT x / y FROM n WHERE 90 / x > 9;
