SELECT x, COUNT(*) AS n FROM (VALUES (1, 'a'), (1, NULL), (2, 'b')) AS v (x, y) GROUP BY x;
