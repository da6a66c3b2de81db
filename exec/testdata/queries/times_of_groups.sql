-- MIN and MAX of times and texts over rows that change.
-- file t.json
--|{"k":1,"y":"2024-02-29","ts":"2024-02-29T12:00:00.000001","z":"2024-02-29T12:00:00Z","s":"q"}
--|{"k":1,"y":"0001-01-01","ts":"1969-12-31T23:59:59.999999","z":"2024-02-29T13:00:00Z","s":"w"}
--|{"k":2,"y":"9999-12-31","ts":"9999-12-31T23:59:59.999999","z":null,"s":"e"}
--|{"k":2,"y":null,"ts":null,"z":null,"s":null}
--|{"k":null,"y":"2024-02-29","ts":"2024-02-29T12:00:00.000001","z":"2024-02-29T12:00:00Z","s":"q"}
CREATE TABLE t (k INT, y DATE, ts TIMESTAMP(6), z TIMESTAMP_LTZ(3), s STRING)
  WITH ('connector' = 'filesystem', 'path' = '${dir}/t.json', 'format' = 'json');
SELECT n, MIN(m) AS m, MAX(x) AS x, MIN(y) AS y, MAX(s) AS s FROM (SELECT k, COUNT(*) AS n, MIN(ts) AS m, MAX(ts) AS x, MAX(y) AS y, MIN(s) AS s FROM t GROUP BY k) GROUP BY n;
