-- Rows go through an append-only sink once, whatever happens.
CREATE TABLE g (i BIGINT, k BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '5000',
  'fields.i.kind' = 'sequence', 'fields.i.start' = '1', 'fields.k.kind' = 'random', 'fields.k.min' = '0', 'fields.k.max' = '9', 'seed' = '7');
CREATE TABLE kept (i BIGINT, twice BIGINT)
  WITH ('connector' = 'filesystem', 'path' = '${dir}/out', 'format' = 'csv');
INSERT INTO kept SELECT i, i * 2 FROM g WHERE i % 500 = 0;
