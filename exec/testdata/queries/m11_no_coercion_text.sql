-- M11: "7" and "007" are two texts; a number and a truth value are none.
-- on_row_error keep
-- file s.json
--|{"k":"7"}
--|{"k":"007"}
--|{"k":7}
--|{"k":true}
CREATE TABLE s (k STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT k, COUNT(*) AS n FROM s GROUP BY k;
