-- A query without FROM has one row.
SELECT 1 + 1 AS two, 'a' || NULL AS n, COUNT(*) AS c, SUM(5) AS s;
