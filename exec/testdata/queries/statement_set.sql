-- Two sinks of one scan.
CREATE TABLE g (i BIGINT, s STRING, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.v.kind' = 'random', 'fields.v.min' = '-50', 'fields.v.max' = '50');
CREATE TABLE a (s STRING, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/out/a', 'format' = 'json');
CREATE TABLE b (v BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/out/b', 'format' = 'json');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO a SELECT s, COUNT(*) FROM g GROUP BY s;
  INSERT INTO b SELECT v FROM g WHERE v > 48 AND i < 900;
END;
