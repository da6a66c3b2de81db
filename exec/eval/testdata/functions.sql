-- What PostgreSQL 15 makes of functions of numbers and times, and of arithmetic with times. Written by:
-- psql -XAtq -f functions.sql > functions.txt. A line is zone|function or operation|type of the result|arguments|value.
SET datestyle = 'ISO, YMD'; SET intervalstyle = 'postgres'; SET client_min_messages = error;
CREATE FUNCTION pg_temp.kind(t text) RETURNS text LANGUAGE sql AS $$
  SELECT CASE WHEN t = 'DOUBLE' THEN 'float8' WHEN t LIKE 'TIMESTAMP_LTZ%' THEN 'timestamptz' WHEN t LIKE 'TIMESTAMP%' THEN 'timestamp'
              WHEN t LIKE 'INTERVAL%' THEN 'interval' WHEN t = 'STRING' THEN 'text' ELSE t END $$;
-- run evaluates a template in which $1 and $2 stand for the arguments, each TYPE:value.
CREATE FUNCTION pg_temp.run(zone text, fn text, result text, template text, VARIADIC args text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE q text := 'SELECT (' || template || ')::text'; r text; i int; t text; v text;
BEGIN
  FOR i IN 1 .. array_length(args, 1) LOOP
    t := split_part(args[i], ':', 1);
    v := substr(args[i], length(t) + 2);
    q := replace(q, '$' || i, format('CAST(%L AS %s)', v, pg_temp.kind(ltrim(t, '='))));
  END LOOP;
  PERFORM set_config('timezone', zone, false);
  BEGIN
    EXECUTE q INTO r;
  EXCEPTION WHEN OTHERS THEN r := 'error: ' || SQLERRM;
  END;
  RETURN zone || '|' || fn || '|' || result || '|' || array_to_string(args, ';') || '|' || coalesce(r, 'NULL');
END $$;

-- Numbers.
SELECT pg_temp.run('UTC', fn, t, fn || '($1)', t || ':' || x) FROM (VALUES ('abs'), ('sign'), ('ceil'), ('floor')) f(fn), (VALUES
  ('INT', '0'), ('INT', '-5'), ('INT', '2147483647'), ('INT', '-2147483648'), ('BIGINT', '9223372036854775807'), ('BIGINT', '-9223372036854775807'), ('BIGINT', '-9223372036854775808'),
  ('DOUBLE', '1.5'), ('DOUBLE', '-1.5'), ('DOUBLE', '-0.25'), ('DOUBLE', '0'), ('DOUBLE', '-0'), ('DOUBLE', 'NaN'), ('DOUBLE', 'Infinity'), ('DOUBLE', '-Infinity'), ('DOUBLE', '1e300')) x(t, x) WHERE fn IN ('abs', 'sign') OR t = 'DOUBLE';
SELECT pg_temp.run('UTC', fn, CASE WHEN fn IN ('ceil', 'floor') THEN 'DECIMAL(38, 0)' ELSE 'DECIMAL(38, 3)' END, CASE WHEN fn = 'sign' THEN 'sign($1)::numeric(38,3)' ELSE fn || '($1)' END, 'DECIMAL(38, 3):' || x)
  FROM (VALUES ('abs'), ('sign'), ('ceil'), ('floor')) f(fn), (VALUES ('0'), ('0.001'), ('-0.001'), ('1.999'), ('-1.999'), ('5'), ('-5'), ('99999999999999999999999999999999999.999'), ('-99999999999999999999999999999999999.999')) x(x);
SELECT pg_temp.run('UTC', fn, 'DOUBLE', pg || '($1)', 'DOUBLE:' || x) FROM (VALUES ('round', 'round'), ('truncate', 'trunc'), ('sqrt', 'sqrt'), ('exp', 'exp'), ('ln', 'ln'), ('log10', 'log')) f(fn, pg),
  (VALUES ('0.5'), ('1.5'), ('2.5'), ('-0.5'), ('-2.5'), ('0'), ('-0'), ('1'), ('2'), ('10'), ('1000'), ('1e-300'), ('1e300'), ('700'), ('709.5'), ('710'), ('-700'), ('-745'), ('-750'), ('NaN'), ('Infinity'), ('-Infinity'), ('3.7'), ('123.456')) x(x);
SELECT pg_temp.run('UTC', fn, 'DECIMAL(38, ' || greatest(n, 0) || ')', pg || '($1, $2)', 'DECIMAL(38, 4):' || x, '=INT:' || n) FROM (VALUES ('round', 'round'), ('truncate', 'trunc')) f(fn, pg),
  (VALUES ('0'), ('2.5'), ('-2.5'), ('1234.5678'), ('-1234.5678'), ('0.0500'), ('9999.9999'), ('1250'), ('-1350')) x(x), (VALUES (-5), (-2), (-1), (0), (1), (2), (3), (4), (6)) n(n);
SELECT pg_temp.run('UTC', 'power', 'DOUBLE', 'power($1, $2)', 'DOUBLE:' || x, 'DOUBLE:' || y)
  FROM (VALUES ('0'), ('-0'), ('1'), ('-1'), ('2'), ('-2'), ('0.5'), ('10'), ('1.1'), ('NaN'), ('Infinity'), ('-Infinity'), ('-8')) x(x), (VALUES ('0'), ('1'), ('-1'), ('2'), ('3'), ('-3'), ('0.5'), ('-0.5'), ('10.5'), ('400'), ('-400'), ('1100'), ('-1100'), ('NaN'), ('Infinity'), ('-Infinity')) y(y);

-- Fields.
CREATE TEMP TABLE moments (x text);
INSERT INTO moments VALUES ('0001-01-01 00:00:00'), ('0009-12-31 23:59:59.999999'), ('0100-12-31 12:00:00'), ('0101-01-01 00:00:00'), ('1000-12-31 00:00:01'), ('1001-01-01 00:00:00'), ('1900-02-28 23:59:59'),
  ('1969-12-31 23:59:59.999999'), ('1970-01-01 00:00:00'), ('1999-12-31 23:59:59.5'), ('2000-02-29 12:34:56.789'), ('2001-01-01 00:00:00'), ('2004-12-31 00:00:00'), ('2005-01-01 13:00:00'), ('2005-01-02 00:00:00'),
  ('2008-12-29 00:00:00'), ('2017-03-26 01:30:00'), ('2017-10-29 00:30:00'), ('2017-10-29 01:30:00'), ('2017-11-25 01:02:03.456789'), ('9999-12-31 22:00:00');
CREATE TEMP TABLE units (u text, t text);
INSERT INTO units VALUES ('YEAR', 'BIGINT'), ('QUARTER', 'BIGINT'), ('MONTH', 'BIGINT'), ('WEEK', 'BIGINT'), ('DAY', 'BIGINT'), ('HOUR', 'BIGINT'), ('MINUTE', 'BIGINT'), ('DOW', 'BIGINT'), ('ISODOW', 'BIGINT'), ('DOY', 'BIGINT'),
  ('ISOYEAR', 'BIGINT'), ('CENTURY', 'BIGINT'), ('DECADE', 'BIGINT'), ('MILLENNIUM', 'BIGINT'), ('MICROSECOND', 'BIGINT'), ('SECOND', 'DECIMAL(38, 6)'), ('MILLISECOND', 'DECIMAL(38, 3)'), ('EPOCH', 'DECIMAL(38, 6)');
SELECT pg_temp.run('UTC', 'extract', t, 'extract(' || u || ' FROM $2)', '=STRING:' || u, 'TIMESTAMP(6):' || x) FROM units, moments;
SELECT pg_temp.run('Europe/Berlin', 'extract', t, 'extract(' || u || ' FROM $2)', '=STRING:' || u, 'TIMESTAMP_LTZ(6):' || x || '+00') FROM units, moments WHERE x > '1900';
SELECT pg_temp.run('America/New_York', 'extract', t, 'extract(' || u || ' FROM $2)', '=STRING:' || u, 'TIMESTAMP_LTZ(6):0001-01-01 00:00:00+00') FROM units;
SELECT pg_temp.run('UTC', 'extract', t, 'extract(' || u || ' FROM $2)' || CASE WHEN u = 'EPOCH' THEN '::numeric(38,6)' ELSE '' END, '=STRING:' || u, 'DATE:' || left(x, 10)) FROM units, moments WHERE u NOT IN ('HOUR', 'MINUTE', 'SECOND', 'MILLISECOND', 'MICROSECOND');
SELECT pg_temp.run('UTC', 'extract', t, 'extract(' || u || ' FROM $2)', '=STRING:' || u, 'INTERVAL DAY TO SECOND:' || x) FROM units, (VALUES ('00:00:00'), ('1 day 02:03:04.5'), ('-3 days -23:59:59.999999'), ('400 days')) x(x) WHERE u NOT IN ('WEEK', 'DOW', 'ISODOW', 'DOY', 'ISOYEAR');

-- Units.
SELECT pg_temp.run('UTC', fn, 'TIMESTAMP(6)', 'date_trunc($1, $2)', '=STRING:' || u, 'TIMESTAMP(6):' || x) FROM (VALUES ('date_trunc')) f(fn), (SELECT u FROM units WHERE u NOT IN ('DOW', 'ISODOW', 'DOY', 'ISOYEAR', 'EPOCH')) u, moments;
SELECT pg_temp.run(z, 'date_trunc', 'TIMESTAMP_LTZ(6)', 'date_trunc($1, $2)', '=STRING:' || u, 'TIMESTAMP_LTZ(6):' || x || '+00') FROM (VALUES ('Europe/Berlin'), ('America/St_Johns')) z(z), (SELECT u FROM units WHERE u NOT IN ('DOW', 'ISODOW', 'DOY', 'ISOYEAR', 'EPOCH')) u, moments WHERE x > '1970-02';
SELECT pg_temp.run('UTC', 'floor_to', 'DATE', 'date_trunc($1, $2)::date', '=STRING:' || u, 'DATE:' || left(x, 10)) FROM (VALUES ('DAY'), ('WEEK'), ('MONTH'), ('QUARTER'), ('YEAR'), ('CENTURY')) u(u), moments;

-- Arithmetic.
CREATE TEMP TABLE spans (x text);
INSERT INTO spans VALUES ('00:00:00'), ('1 day'), ('-1 days'), ('00:00:00.000001'), ('-25:00:00'), ('36500 days 23:59:59.999999'), ('-3000000 days');
CREATE TEMP TABLE months (x text);
INSERT INTO months VALUES ('0 mons'), ('1 mon'), ('-1 mons'), ('11 mons'), ('1 year'), ('-4 years'), ('100 years 1 mon'), ('8000 years'), ('-1990 years');
SELECT pg_temp.run('UTC', op, 'TIMESTAMP(6)', '$1 ' || op || ' $2', 'TIMESTAMP(6):' || m.x, 'INTERVAL DAY TO SECOND:' || s.x) FROM (VALUES ('+'), ('-')) o(op), moments m, spans s WHERE m.x > '1900';
SELECT pg_temp.run('UTC', '+', 'TIMESTAMP(6)', '$1 + $2', 'INTERVAL DAY TO SECOND:' || s.x, 'TIMESTAMP(6):' || m.x) FROM moments m, spans s WHERE m.x > '2017';
SELECT pg_temp.run('UTC', op, 'TIMESTAMP(6)', '$1 ' || op || ' $2', 'TIMESTAMP(6):' || m.x, 'INTERVAL YEAR TO MONTH:' || s.x) FROM (VALUES ('+'), ('-')) o(op), moments m, months s WHERE m.x > '1900';
SELECT pg_temp.run(z, op, 'TIMESTAMP_LTZ(6)', '$1 ' || op || ' $2', 'TIMESTAMP_LTZ(6):' || m.x || '+00', 'INTERVAL YEAR TO MONTH:' || s.x) FROM (VALUES ('+'), ('-')) o(op), (VALUES ('Europe/Berlin'), ('America/New_York')) z(z), (VALUES ('2017-02-26 01:30:00'), ('2017-01-31 23:30:00'), ('2017-09-29 00:30:00'), ('2017-09-29 01:30:00'), ('2017-11-05 05:30:00'), ('2016-02-29 12:00:00')) m(x), months s WHERE s.x NOT LIKE '%000 %' AND s.x NOT LIKE '%1990 %';
SELECT pg_temp.run('UTC', op, 'TIMESTAMP(6)', '$1 ' || op || ' $2', 'DATE:' || left(m.x, 10), 'INTERVAL DAY TO SECOND:' || s.x) FROM (VALUES ('+'), ('-')) o(op), moments m, spans s WHERE m.x > '2000' AND m.x < '2006';
SELECT pg_temp.run('UTC', op, 'TIMESTAMP(6)', '$1 ' || op || ' $2', 'DATE:' || left(m.x, 10), 'INTERVAL YEAR TO MONTH:' || s.x) FROM (VALUES ('+'), ('-')) o(op), moments m, months s WHERE m.x > '2000' AND m.x < '2006';
SELECT pg_temp.run('UTC', op, 'DATE', '$1 ' || op || ' $2', 'DATE:' || left(m.x, 10), 'INT:' || n) FROM (VALUES ('+'), ('-')) o(op), moments m, (VALUES (0), (1), (-1), (365), (-60)) n(n) WHERE m.x BETWEEN '0101' AND '3';
SELECT pg_temp.run('UTC', '-', 'INT', '$1 - $2', 'DATE:' || left(m.x, 10), 'DATE:' || left(s.x, 10)) FROM moments m, moments s WHERE s.x > '2017';
SELECT pg_temp.run('UTC', '-', 'INTERVAL DAY TO SECOND', '$1 - $2', 'TIMESTAMP(6):' || m.x, 'TIMESTAMP(6):' || s.x) FROM moments m, moments s WHERE s.x > '2008';
SELECT pg_temp.run('Europe/Berlin', '-', 'INTERVAL DAY TO SECOND', '$1 - $2', 'TIMESTAMP_LTZ(6):' || m.x || '+00', 'TIMESTAMP_LTZ(6):' || s.x || '+00') FROM moments m, moments s WHERE s.x > '2008' AND m.x > '1900' AND m.x < '9';
SELECT pg_temp.run('UTC', op, 'INTERVAL DAY TO SECOND', 'justify_hours(make_interval(secs => extract(epoch FROM $1 ' || op || ' $2)::float8))', 'INTERVAL DAY TO SECOND:' || m.x, 'INTERVAL DAY TO SECOND:' || s.x) FROM (VALUES ('+'), ('-')) o(op), spans m, spans s WHERE m.x || s.x NOT LIKE '%3000000%';
SELECT pg_temp.run('UTC', op, 'INTERVAL YEAR TO MONTH', '$1 ' || op || ' $2', 'INTERVAL YEAR TO MONTH:' || m.x, 'INTERVAL YEAR TO MONTH:' || s.x) FROM (VALUES ('+'), ('-')) o(op), months m, months s;
SELECT pg_temp.run('UTC', op, 'INTERVAL DAY TO SECOND', 'justify_hours(make_interval(secs => extract(epoch FROM make_interval(secs => extract(epoch FROM $1)::float8) ' || op || ' $2)::float8))', 'INTERVAL DAY TO SECOND:' || s.x, t || ':' || n) FROM (VALUES ('*'), ('/')) o(op), (VALUES ('00:00:00'), ('1 day 02:03:04'), ('-1 days'), ('00:00:00.000001'), ('00:00:00.000003'), ('25:00:00')) s(x), (VALUES ('BIGINT', '0'), ('BIGINT', '1'), ('BIGINT', '-7'), ('BIGINT', '2'), ('DOUBLE', '0.1'), ('DOUBLE', '-2.5'), ('DOUBLE', '0'), ('DOUBLE', 'NaN'), ('DOUBLE', '1e30')) n(t, n);
SELECT pg_temp.run('UTC', '*', 'INTERVAL YEAR TO MONTH', '$1 * $2', 'INTERVAL YEAR TO MONTH:' || s.x, 'BIGINT:' || n) FROM months s, (VALUES ('0'), ('3'), ('-2'), ('1000000000000')) n(n);
SELECT pg_temp.run('UTC', 'neg', t, 'justify_hours(- $1)', t || ':' || x) FROM (SELECT 'INTERVAL DAY TO SECOND', x FROM spans UNION ALL SELECT 'INTERVAL YEAR TO MONTH', x FROM months) s(t, x);

-- The greatest and the least.
SELECT pg_temp.run('UTC', fn, t, fn || '($1, $2, $3)', t || ':' || x, t || ':' || y, t || ':' || z) FROM (VALUES ('greatest'), ('least')) f(fn), (VALUES
  ('DOUBLE', '1', 'NaN', 'Infinity'), ('DOUBLE', '-Infinity', '3', '-2'), ('INT', '1', '-5', '7'), ('STRING', 'b', 'é', 'a'), ('STRING', '', 'z', 'Z'), ('DECIMAL(10, 2)', '1.50', '-1.50', '1.49'), ('BOOLEAN', 'true', 'false', 'true'),
  ('TIMESTAMP(6)', '2017-01-01 00:00:00', '1969-01-01 00:00:00', '2017-01-01 00:00:00.000001'), ('DATE', '2017-01-01', '1969-01-01', '0001-01-01')) v(t, x, y, z);
