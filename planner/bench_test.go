package planner

import "testing"

// longScript has fifty lines and something of everything.
const longScript = `-- The day in one job.
CREATE TABLE user_behavior (
  user_id     BIGINT,
  item_id     BIGINT,
  category_id BIGINT,
  behavior    STRING,
  t           BIGINT,
  price       DECIMAL(38, 2)
) WITH ('connector' = 'filesystem', 'path' = 'data/user_behavior.csv', 'format' = 'csv');
CREATE TABLE returns (
  user_id BIGINT,
  item_id BIGINT,
  reason  STRING,
  t       BIGINT
) WITH ('connector' = 'filesystem', 'path' = 'data/returns.json', 'format' = 'json');
CREATE TABLE by_behavior (
  behavior STRING,
  n        BIGINT,
  users    BIGINT
) WITH ('connector' = 'filesystem', 'path' = 'out/by_behavior', 'format' = 'csv');
CREATE TABLE by_item (
  item_id BIGINT,
  n       BIGINT,
  total   DECIMAL(38, 2)
) WITH ('connector' = 'filesystem', 'path' = 'out/by_item', 'format' = 'json');
CREATE TABLE histogram (
  n     BIGINT,
  items BIGINT
) WITH ('connector' = 'filesystem', 'path' = 'out/histogram', 'format' = 'csv');
CREATE VIEW buys AS
SELECT user_id, item_id, category_id, price, t
FROM user_behavior
WHERE behavior = 'buy' AND price > 0;
SET 'parallelism' = '4';
SET 'checkpoint.interval' = '1 s';
EXECUTE STATEMENT SET BEGIN
INSERT INTO by_behavior
SELECT behavior, COUNT(*) AS n, COUNT(DISTINCT user_id) AS users
FROM user_behavior
WHERE behavior IN ('buy', 'cart', 'fav') AND t BETWEEN 1511544070 AND 1512057600
GROUP BY behavior
HAVING COUNT(*) > 10;
INSERT INTO by_item
SELECT item_id, SUM(n), SUM(total)
FROM (SELECT item_id, 1 AS n, price AS total FROM buys UNION ALL SELECT item_id, -1, NULL FROM returns WHERE reason <> 'late')
GROUP BY item_id;
INSERT INTO histogram
SELECT n, COUNT(*) FROM (SELECT item_id, COUNT(*) AS n FROM buys GROUP BY item_id) WHERE n < 1000 GROUP BY n;
END;`

// BenchmarkPlanScript: planning a script of fifty lines takes less than a millisecond.
func BenchmarkPlanScript(b *testing.B) {
	for b.Loop() {
		if _, err := Plan(longScript, nil, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
