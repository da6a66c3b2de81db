-- M01: 64-bit keys are exact in state, over an exchange and in JSON; what is no BIGINT is rejected.
-- on_row_error keep
-- file s.json
--|{"k":9007199254740992}
--|{"k":9007199254740993}
--|{"k":9223372036854775807}
--|{"k":-9223372036854775808}
--|{"k":9223372036854775808}
--|{"k":1e3}
--|{"k":12.0}
--|{"k":12.5}
--|{"k":9007199254740993}
CREATE TABLE s (k BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT k, COUNT(*) AS n, MIN(k) AS least, SUM(k) AS total FROM s GROUP BY k;
