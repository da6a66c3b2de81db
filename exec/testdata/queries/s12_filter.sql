-- S12: so does a filter, and so does CSV.
-- file s.csv
--|a
--|a 
--|A
--|""
--| 
--|"a	"
--|a
CREATE TABLE s (k STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.csv', 'format' = 'csv');
SELECT k FROM s WHERE k = 'a';
