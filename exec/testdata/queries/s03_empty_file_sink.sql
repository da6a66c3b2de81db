-- S03: the one row of no input reaches a sink once.
-- file s.json
CREATE TABLE s (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
CREATE TABLE o (n BIGINT, t DECIMAL(38, 0)) WITH ('connector' = 'filesystem', 'path' = '${dir}/out', 'format' = 'json');
INSERT INTO o SELECT count(*), sum(v) FROM s;
