-- S14: a reserved word without quotes is a mistake with a place, never NULL.
CREATE TABLE s ("Group" STRING) WITH ('connector' = 'filesystem', 'path' = '${dir}/s.json', 'format' = 'json');
SELECT group, COUNT(*) AS n FROM s GROUP BY "Group";
