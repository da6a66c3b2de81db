-- M11: no type of JSON is made another: a text is no BIGINT, "" is neither 0 nor NULL.
-- on_row_error keep
-- file s.json
--|{"k":7}
--|{"k":"7"}
--|{"k":"007"}
--|{"k":""}
--|{"k":true}
--|{"k":7.5}
--|{"k":[7]}
--|{"k":{}}
CREATE TABLE s (k BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT k, COUNT(*) AS n FROM s GROUP BY k;
