-- Groups by the hour and day of a moment, in a zone of half hours.
-- file t.json
--|{"id":1,"y":"2024-02-29","ts":"2024-02-29T23:59:59.999999","z":"2024-03-31T00:30:00Z","n":1709251199,"x":"{\"a\":{\"b\":[1,\"two\",null]},\"c\":true,\"d\":1.50}"}
--|{"id":2,"y":"1969-12-31","ts":"1969-12-31T23:59:59.5","z":"1969-12-31T23:59:59.999Z","n":-1,"x":"no JSON"}
--|{"id":3,"y":null,"ts":null,"z":null,"n":null,"x":null}
--|{"id":4,"y":"0001-01-01","ts":"0001-01-01T00:00:00","z":"0001-01-01T00:00:00Z","n":0,"x":"{}"}
--|{"id":5,"y":"9999-12-31","ts":"9999-12-31T12:00:00","z":"2024-10-27T01:30:00Z","n":1511544070,"x":"{\"a\":{\"b\":[]},\"c\":\"\"}"}
--|{"id":6,"y":"2020-12-31","ts":"2021-01-03T00:00:00","z":"2024-10-27T00:30:00Z","n":951782400,"x":"{\"c\":\"é\"}"}
CREATE TABLE t (id INT, y DATE, ts TIMESTAMP(6), z TIMESTAMP_LTZ(3), n BIGINT, x STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.json', 'format' = 'json');
SET 'timezone' = 'Asia/Kolkata';
SELECT CAST(z AS DATE) AS day, COUNT(*) AS n, MIN(z) AS first, MAX(DATE_TRUNC('hour', z)) AS last FROM t WHERE id <> 4 OR id IS NULL GROUP BY CAST(z AS DATE);
