-- BYTES: compared and grouped by bytes, base64 in JSON.
-- file t.json
--|{"k":"AAE=","v":"/w=="}
--|{"k":"AAE=","v":""}
--|{"k":"","v":"AA=="}
--|{"k":null,"v":null}
--|{"k":null,"v":"YWJj"}
--|{"k":"/////w==","v":"YWI="}
CREATE TABLE t (k BYTES, v BYTES) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.json', 'format' = 'json');
SELECT k, COUNT(*) AS n, COUNT(DISTINCT v) AS u, MAX(OCTET_LENGTH(v)) AS l, SUM(CASE WHEN v > X'61' THEN 1 ELSE 0 END) AS g, MAX(CAST(v || X'00' AS STRING)) AS s FROM t WHERE v IS NULL OR v <> X'ff' GROUP BY k;
