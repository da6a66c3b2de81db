-- M01, into files of JSON.
-- file s.json
--|{"k":9007199254740992}
--|{"k":9007199254740993}
--|{"k":9223372036854775807}
--|{"k":-9223372036854775808}
--|{"k":1e3}
--|{"k":12.0}
--|{"k":9007199254740993}
CREATE TABLE s (k BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
CREATE TABLE o (k BIGINT, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/out', 'format' = 'json');
INSERT INTO o SELECT k, COUNT(*) FROM s GROUP BY k;
