-- Counts of buys and carts in a shop's clicks, checkpointed every second, exactly once.
-- The file has no header: user_id, item_id, category_id, behavior, epoch seconds.
CREATE TABLE user_behavior (
  user_id     BIGINT,
  item_id     BIGINT,
  category_id BIGINT,
  behavior    STRING,
  t           BIGINT
) WITH ('connector' = 'filesystem', 'path' = 'data/user_behavior.csv', 'format' = 'csv');

SET 'checkpoint.interval' = '1 s';
SET 'checkpoint.mode' = 'exactly_once';
SET 'checkpoint.min_pause' = '500 ms';
SET 'checkpoint.timeout' = '60 s';
SET 'checkpoint.max_concurrent' = '1';
SET 'checkpoint.retention' = 'retain_on_cancellation';

SELECT behavior, COUNT(*) AS n
FROM user_behavior
WHERE behavior IN ('buy', 'cart')
GROUP BY behavior;
