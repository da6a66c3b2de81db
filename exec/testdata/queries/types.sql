-- Every type on its way through a file, a key, an exchange, state and JSON.
-- file s.json
--|{"b":true,"i":-2147483648,"l":9007199254740993,"d":0.1,"s":"a\"\\\n","t":"2017-11-25T01:00:00Z"}
--|{"b":true,"i":-2147483648,"l":9007199254740993,"d":0.1,"s":"a\"\\\n","t":"2017-11-25T01:00:00Z"}
--|{"b":false,"i":2147483647,"l":-9223372036854775808,"d":-1e300,"s":"","t":"1969-12-31T23:59:59.999Z"}
--|{"b":null,"i":null,"l":null,"d":null,"s":null,"t":null}
--|{}
CREATE TABLE s (b BOOLEAN, i INT, l BIGINT, d DOUBLE, s STRING, t TIMESTAMP_LTZ(3))
  WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT b, i, l, d, s, t, count(*) AS n, sum(i) AS si, sum(l) AS sl, sum(d) AS sd FROM s GROUP BY b, i, l, d, s, t;
