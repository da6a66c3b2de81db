-- S12: text is compared by bytes: no folding, no trimming.
-- file s.json
--|{"k":"a"}
--|{"k":"a "}
--|{"k":"A"}
--|{"k":""}
--|{"k":" "}
--|{"k":"a\t"}
--|{"k":"a"}
CREATE TABLE s (k STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT k, count(*) AS n FROM s GROUP BY k;
