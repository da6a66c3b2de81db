-- M12: numbers out of range are rejected; computed NaN and infinities are texts in JSON.
-- on_row_error keep
-- file s.json
--|{"k":"in","v":1e400}
--|{"k":"in","v":NaN}
--|{"k":"in","v":-1e400}
--|{"k":"in","v":1e-400}
--|{"k":"nan","v":"NaN"}
--|{"k":"nan","v":1}
--|{"k":"inf","v":"Infinity"}
--|{"k":"inf","v":1}
--|{"k":"both","v":"Infinity"}
--|{"k":"both","v":"-Infinity"}
--|{"k":"fine","v":0.5}
--|{"k":"none","v":null}
CREATE TABLE s (k STRING, v DOUBLE) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT k, COUNT(*) AS n, SUM(v) AS s, AVG(v) AS a, MIN(v) AS least, MAX(v) AS most, AVG(v) / 0 AS q FROM s GROUP BY k;
