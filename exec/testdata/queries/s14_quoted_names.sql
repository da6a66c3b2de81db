-- S14: quoted names are exact, spaces, quotes and reserved words included.
-- file s.json
--|{"Group":"x","select":1,"Date Time":2,"a\"b":3}
--|{"Group":"x","select":1,"Date Time":2,"a\"b":3}
CREATE TABLE s ("Group" STRING, "select" INT, "Date Time" INT, "a""b" INT) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT "Group", count("select") AS "order", sum("Date Time") AS "Total X", max("a""b") FROM s GROUP BY "Group";
