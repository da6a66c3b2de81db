-- Rows written in the query.
SELECT a, b, a + 1 AS c FROM (VALUES (1, 'x'), (2, NULL), (NULL, '')) AS v (a, b);
