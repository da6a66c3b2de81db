-- S11: NaN is one group, and the greatest value.
-- file s.json
--|{"k":"NaN"}
--|{"k":0.0}
--|{"k":-0.0}
--|{"k":"NaN"}
--|{"k":"Infinity"}
--|{"k":null}
CREATE TABLE s (k DOUBLE) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT k, COUNT(*) AS n, k = CAST('NaN' AS DOUBLE) AS is_nan, k > CAST('Infinity' AS DOUBLE) AS greater FROM s GROUP BY k;
