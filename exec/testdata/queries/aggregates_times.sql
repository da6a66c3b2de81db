-- MIN, MAX, COUNT and DISTINCT of dates and times.
-- file t.json
--|{"k":1,"y":"2024-02-29","ts":"2024-02-29T12:00:00.000001","z":"2024-02-29T12:00:00Z","s":"q"}
--|{"k":1,"y":"0001-01-01","ts":"1969-12-31T23:59:59.999999","z":"2024-02-29T13:00:00Z","s":"w"}
--|{"k":2,"y":"9999-12-31","ts":"9999-12-31T23:59:59.999999","z":null,"s":"e"}
--|{"k":2,"y":null,"ts":null,"z":null,"s":null}
--|{"k":null,"y":"2024-02-29","ts":"2024-02-29T12:00:00.000001","z":"2024-02-29T12:00:00Z","s":"q"}
CREATE TABLE t (k INT, y DATE, ts TIMESTAMP(6), z TIMESTAMP_LTZ(3), s STRING)
  WITH ('connector' = 'filesystem', 'path' = '${dir}/t.json', 'format' = 'json');
SELECT k, MIN(y) AS my, MAX(y) AS xy, MIN(ts) AS mt, MAX(ts) AS xt, COUNT(DISTINCT y) AS uy, COUNT(DISTINCT ts) AS ut, MAX(z) AS mz, COUNT(z) AS cz FROM t GROUP BY k;
