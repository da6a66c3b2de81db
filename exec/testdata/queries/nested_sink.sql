-- A count of counts into files: its final rows, once; groups that vanished are not among them.
CREATE TABLE g (i BIGINT, s STRING, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '9000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '0', 'fields.s.kind' = 'random', 'fields.s.values' = 'x,y,z', 'fields.v.kind' = 'random', 'fields.v.min' = '-50', 'fields.v.max' = '50');
CREATE TABLE out (n BIGINT, groups BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/out', 'format' = 'json');
INSERT INTO out SELECT n, COUNT(*) FROM (SELECT v AS k, COUNT(*) AS n FROM g GROUP BY v) GROUP BY n;
