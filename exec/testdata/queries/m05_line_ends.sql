-- M05: CR LF and LF both end a record, the last one needs none; within quotes both stay as they are.
-- file in/1.csv
--|1,a
--|2,a
--:3,a
-- file in/2.csv
--|4,"b
--|c"
--|5,"b
--|c"
CREATE TABLE s (v INT, k STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/in', 'format' = 'csv');
SELECT k, COUNT(*) AS n, SUM(v) AS v FROM s GROUP BY k;
