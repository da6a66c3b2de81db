-- EXTRACT of dates and times, before 1970 and at both ends of the calendar.
-- file t.json
--|{"id":1,"y":"2024-02-29","ts":"2024-02-29T23:59:59.999999","z":"2024-03-31T00:30:00Z","n":1709251199,"x":"{\"a\":{\"b\":[1,\"two\",null]},\"c\":true,\"d\":1.50}"}
--|{"id":2,"y":"1969-12-31","ts":"1969-12-31T23:59:59.5","z":"1969-12-31T23:59:59.999Z","n":-1,"x":"no JSON"}
--|{"id":3,"y":null,"ts":null,"z":null,"n":null,"x":null}
--|{"id":4,"y":"0001-01-01","ts":"0001-01-01T00:00:00","z":"0001-01-01T00:00:00Z","n":0,"x":"{}"}
--|{"id":5,"y":"9999-12-31","ts":"9999-12-31T12:00:00","z":"2024-10-27T01:30:00Z","n":1511544070,"x":"{\"a\":{\"b\":[]},\"c\":\"\"}"}
--|{"id":6,"y":"2020-12-31","ts":"2021-01-03T00:00:00","z":"2024-10-27T00:30:00Z","n":951782400,"x":"{\"c\":\"é\"}"}
CREATE TABLE t (id INT, y DATE, ts TIMESTAMP(6), z TIMESTAMP_LTZ(3), n BIGINT, x STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.json', 'format' = 'json');
SELECT id, EXTRACT(YEAR FROM y) AS a, EXTRACT(QUARTER FROM y) AS b, EXTRACT(MONTH FROM ts) AS c, EXTRACT(WEEK FROM ts) AS d, EXTRACT(DOW FROM y) AS e, EXTRACT(DOY FROM ts) AS f, EXTRACT(HOUR FROM z) AS g, EXTRACT(MINUTE FROM z) AS h, EXTRACT(SECOND FROM ts) AS k, EXTRACT(EPOCH FROM z) AS l, EXTRACT(ISODOW FROM ts) AS o, EXTRACT(ISOYEAR FROM y) AS p, EXTRACT(CENTURY FROM y) AS r FROM t;
