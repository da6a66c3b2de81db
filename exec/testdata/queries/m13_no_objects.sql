-- M13: blank lines are passed over; what is not one object is rejected.
-- on_row_error keep
-- file s.json
--|{"k":"a"}
--|
--|   
--|null
--|[]
--|"x"
--|{"k":"a"}zzz
--|{"k":"a"}{"k":"a"}
--|{"k":"a"}
CREATE TABLE s (k STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT k, COUNT(*) AS n FROM s GROUP BY k;
