-- M04: a byte order mark begins a file and is no part of its first name or value; elsewhere it is data.
-- file in/1.csv
--|﻿k,v
--|a,1
--|a,2
-- file in/2.csv
--|﻿"k","v"
--|a,3
--|﻿a,4
CREATE TABLE s (k STRING, v INT) WITH ('connector' = 'filesystem', 'path' = '${dir}/in', 'format' = 'csv', 'csv.header' = 'true');
SELECT k, COUNT(*) AS n, SUM(v) AS v FROM s GROUP BY k;
