-- A SELECT without a table.
SELECT 1 + 1 AS two, 'a' || 'b' AS ab;
