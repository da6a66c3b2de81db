-- A statement set: one scan, rows into one folder, groups of groups into the other.
-- file t.csv
--|1,a,10,true,0.5
--|2,a,,false,1e150
--|3,b,9223372036854775807,true,1e150
--|4,b,9223372036854775807,true,-1e150
--|5,,5,,
--|6,,5,false,0
--|7,c,-9223372036854775808,,Infinity
--|8,c,-9223372036854775808,,1
--|9,d,,true,-Infinity
--|10,d,,true,Infinity
--|11,a,10,true,NaN
--|12,e,1,true,2
CREATE TABLE t (id INT, k STRING, v BIGINT, b BOOLEAN, d DOUBLE) WITH ('connector' = 'filesystem', 'path' = '${dir}/t.csv', 'format' = 'csv');
CREATE TABLE o (k STRING, id INT) WITH ('connector' = 'filesystem', 'path' = '${dir}/out/rows', 'format' = 'csv');
CREATE TABLE p (n BIGINT, groups BIGINT) WITH ('connector' = 'filesystem', 'path' = '${dir}/out/groups', 'format' = 'csv');
CREATE VIEW w AS SELECT * FROM t WHERE b;
EXECUTE STATEMENT SET BEGIN
INSERT INTO o (id, k) SELECT id, k FROM w;
INSERT INTO p SELECT n, COUNT(*) FROM (SELECT k, COUNT(*) AS n FROM w GROUP BY k) GROUP BY n;
END;
