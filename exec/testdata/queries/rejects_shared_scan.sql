-- Rows that one scan reads for two queries are rejected by each with their place in the file.
-- on_row_error keep
-- file in/1.csv
--|1,2
--|2,0
--|9,3
-- file in/2.csv
--|x,1
--|0,0
--|4,2
CREATE TABLE n (x BIGINT, y BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/in', 'format' = 'csv');
CREATE TABLE o (q BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/out/o', 'format' = 'csv');
CREATE TABLE p (q BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/out/p', 'format' = 'csv');
EXECUTE STATEMENT SET BEGIN
INSERT INTO o SELECT x / y FROM n;
INSERT INTO p SELECT 100 / x FROM n;
END;
