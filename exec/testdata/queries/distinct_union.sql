-- Duplicates of a union.
-- file t.json
--|{"k":"a","i":1,"s":"x","d":0.5,"b":true,"m":1.25,"t":"2024-02-29T12:00:00Z"}
--|{"k":"a","i":1,"s":"y","d":1.5,"b":false,"m":2.50,"t":"2024-02-29T12:00:01Z"}
--|{"k":"a","i":2,"s":"","d":-3.25,"b":null,"m":-0.01,"t":null}
--|{"k":"b","i":9007199254740993,"s":"x","d":1e100,"b":true,"m":99999999.99,"t":"1969-12-31T23:59:59Z"}
--|{"k":"b","i":-9223372036854775808,"s":"É","d":2,"b":true,"m":null,"t":"2024-02-29T12:00:00Z"}
--|{"k":null,"i":null,"s":null,"d":null,"b":null,"m":null,"t":null}
--|{"k":null,"i":3,"s":"z","d":0,"b":false,"m":0.00,"t":"0001-01-01T00:00:00Z"}
--|{"k":"c","i":null,"s":null,"d":null,"b":null,"m":null,"t":null}
CREATE TABLE t (k STRING, i BIGINT, s STRING, d DOUBLE, b BOOLEAN, m DECIMAL(10, 2), t TIMESTAMP_LTZ(3))
  WITH ('connector' = 'filesystem', 'path' = '${dir}/t.json', 'format' = 'json');
SELECT DISTINCT k FROM (SELECT k FROM t UNION ALL SELECT s FROM t UNION ALL SELECT k FROM t);
