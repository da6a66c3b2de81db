-- Groups over rows written in the query.
SELECT b, COUNT(*) AS n, SUM(a) AS s FROM (VALUES (1, 'x'), (2, NULL), (3, 'x'), (4, NULL)) AS v (a, b) GROUP BY b;
