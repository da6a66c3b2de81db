-- VALUES: each column takes the type that its values meet in.
SELECT a, b, c, d FROM (VALUES (1, '2017-11-25', 1.5, NULL), (2.25, DATE '2017-11-26', 2, TRUE), (NULL, NULL, 1e3, FALSE)) AS v (a, b, c, d);
