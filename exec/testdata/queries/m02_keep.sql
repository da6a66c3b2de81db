-- M02: a line that is no record is kept with its bytes, once, and the others are counted.
-- on_row_error keep
-- file s.json
--|{"k":"a"}
--|{"k":"b"}
--|{"k":
--|{"k":"a"}
--|{"k":"b"}
CREATE TABLE s (k STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT k, COUNT(*) AS n FROM s GROUP BY k;
