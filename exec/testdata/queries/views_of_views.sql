-- Views of views, one of them read twice.
-- file t.json
--|{"id":1,"y":"2024-02-29","ts":"2024-02-29T23:59:59.999999","z":"2024-03-31T00:30:00Z","n":1709251199,"x":"{\"a\":{\"b\":[1,\"two\",null]},\"c\":true,\"d\":1.50}"}
--|{"id":2,"y":"1969-12-31","ts":"1969-12-31T23:59:59.5","z":"1969-12-31T23:59:59.999Z","n":-1,"x":"no JSON"}
--|{"id":3,"y":null,"ts":null,"z":null,"n":null,"x":null}
--|{"id":4,"y":"0001-01-01","ts":"0001-01-01T00:00:00","z":"0001-01-01T00:00:00Z","n":0,"x":"{}"}
--|{"id":5,"y":"9999-12-31","ts":"9999-12-31T12:00:00","z":"2024-10-27T01:30:00Z","n":1511544070,"x":"{\"a\":{\"b\":[]},\"c\":\"\"}"}
--|{"id":6,"y":"2020-12-31","ts":"2021-01-03T00:00:00","z":"2024-10-27T00:30:00Z","n":951782400,"x":"{\"c\":\"é\"}"}
CREATE TABLE t (id INT, y DATE, ts TIMESTAMP(6), z TIMESTAMP_LTZ(3), n BIGINT, x STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.json', 'format' = 'json');
CREATE VIEW known AS SELECT id, y, n FROM t WHERE y IS NOT NULL;
CREATE VIEW years (id, year) AS SELECT id, EXTRACT(YEAR FROM y) FROM known;
CREATE VIEW halves AS SELECT year > 2000 AS late, COUNT(*) AS n, SUM(id) AS ids FROM years GROUP BY year > 2000;
SELECT late, n, ids FROM halves UNION ALL SELECT NULL, SUM(n), MAX(ids) FROM halves;
