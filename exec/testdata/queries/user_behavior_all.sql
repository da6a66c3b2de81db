-- The classic example: count everything.
-- file user_behavior.csv
--|1,2268318,2520377,pv,1511544070
--|1,2333346,2520771,pv,1511561733
--|2,2576651,149192,buy,1511572885
--|2,3830808,4181361,cart,1511593493
--|3,4365585,2520377,pv,1511596146
--|3,4606018,2735466,fav,1511616481
--|4,230380,411153,cart,1511644942
--|4,3827899,2920476,buy,1511713473
--|5,3745169,2891509,cart,1511725471
--|5,1531036,2920476,pv,1511733732
CREATE TABLE user_behavior (
  user_id BIGINT, item_id BIGINT, category_id BIGINT, behavior STRING, ts BIGINT
) WITH ('connector' = 'filesystem', 'path' = '${dir}/user_behavior.csv', 'format' = 'csv');
SELECT behavior, COUNT(*) AS n FROM user_behavior GROUP BY behavior;
