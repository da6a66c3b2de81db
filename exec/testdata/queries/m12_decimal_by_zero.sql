-- M12: an integer or a DECIMAL divided by zero is a row error; the other rows still count.
-- on_row_error keep
-- file s.csv
--|1,0,1.5
--|2,2,0.00
--|3,2,1.5
CREATE TABLE s (i INT, j INT, d DECIMAL(5, 2)) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.csv', 'format' = 'csv');
SELECT i / j AS q, i / d AS r FROM s;
