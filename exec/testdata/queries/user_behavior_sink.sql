-- The same into files: final rows, once.
-- file in/a.csv
--|1,pv
--|2,pv
--|3,buy
-- file in/b.csv
--|4,cart
--|5,buy
--|6,buy
CREATE TABLE user_behavior (user_id BIGINT, behavior STRING)
  WITH ('connector' = 'filesystem', 'path' = '${dir}/in', 'format' = 'csv');
CREATE TABLE counts (behavior STRING, n BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '${dir}/out', 'format' = 'json');
INSERT INTO counts SELECT behavior, COUNT(*) FROM user_behavior GROUP BY behavior;
