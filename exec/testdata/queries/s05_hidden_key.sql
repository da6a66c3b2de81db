-- S05: groups are those of GROUP BY, selected or not.
-- file s.csv
--|a
--|a
--|b
--|b
--|b
CREATE TABLE s (k STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.csv', 'format' = 'csv');
SELECT count(*) AS n FROM s GROUP BY k;
