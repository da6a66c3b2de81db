-- S13: equal means equal bytes; nothing is normalised.
-- file s.json
--|{"k":"é"}
--|{"k":"é"}
--|{"k":"é"}
--|{"k":"K"}
--|{"k":"K"}
--|{"k":"👩‍🚀"}
CREATE TABLE s (k STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT k, count(*) AS n FROM s GROUP BY k;
