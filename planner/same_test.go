package planner

import (
	"strings"
	"testing"
)

// S18: an expression of the select list is one of GROUP BY if it is written the same,
// names, case and blanks apart, and no other.
func TestS18SameExpressions(t *testing.T) {
	t.Parallel()
	const table = "CREATE TABLE t (a INT, b INT, s STRING, f BOOLEAN, m DECIMAL(10, 2), d DATE, ts TIMESTAMP(3), x BYTES) WITH ('connector' = 'datagen'); "
	for _, test := range []struct{ forms, others []string }{
		{[]string{"a - 1", "A  -  1"}, []string{"a - 2", "a + 1", "1 - a", "b - 1", "a - 1.0"}},
		{[]string{"-a", "- t.a"}, []string{"+a", "-b"}},
		{[]string{"NOT f", "not (f)"}, []string{"f"}},
		{[]string{"a IS NULL", "A is null"}, []string{"a IS NOT NULL", "b IS NULL"}},
		{[]string{"f IS TRUE", "f is true"}, []string{"f IS NOT TRUE", "f IS FALSE", "f IS UNKNOWN"}},
		{[]string{"a IS DISTINCT FROM b", "t.a is distinct from t.b"}, []string{"a IS NOT DISTINCT FROM b", "b IS DISTINCT FROM a"}},
		{[]string{"a IN (1, 2)", "a in (1,2)"}, []string{"a NOT IN (1, 2)", "a IN (2, 1)", "a IN (1)"}},
		{[]string{"a BETWEEN 1 AND 2", "a between 1 and 2"}, []string{"a NOT BETWEEN 1 AND 2", "a BETWEEN 2 AND 1"}},
		{[]string{"s LIKE 'x%'", "s like 'x%'"}, []string{"s NOT LIKE 'x%'", "s ILIKE 'x%'", "s LIKE 'y%'", "s LIKE 'x%' ESCAPE '!'"}},
		{[]string{"CASE WHEN a = 1 THEN 'x' ELSE 'y' END", "case when a = 1 then 'x' else 'y' end"}, []string{"CASE WHEN a = 1 THEN 'x' END", "CASE a WHEN 1 THEN 'x' ELSE 'y' END", "CASE WHEN a = 1 THEN 'y' ELSE 'x' END"}},
		{[]string{"COALESCE(a, 0)", "coalesce(A, 0)"}, []string{"COALESCE(a, 1)", "NULLIF(a, 0)"}},
		{[]string{"CAST(a AS BIGINT)", "cast(a as bigint)", "a::bigint", "CAST(a AS INT8)"}, []string{"TRY_CAST(a AS BIGINT)", "CAST(a AS INT)", "CAST(b AS BIGINT)"}},
		{[]string{"CAST(a AS STRING)", "CAST(a AS VARCHAR)", "a::TEXT"}, []string{"CAST(a AS BYTES)", "CAST(a AS VARCHAR(5))"}},
		{[]string{"a <> b", "a != b"}, []string{"b <> a", "a = b"}},
		{[]string{"CAST(m AS DECIMAL(5, 1))", "CAST(m AS NUMERIC(5,1))"}, []string{"CAST(m AS DECIMAL(5, 2))", "CAST(m AS DECIMAL(5))"}},
		{[]string{"CHAR_LENGTH(s)", "char_length(s)"}, []string{"CHARACTER_LENGTH(s)", "OCTET_LENGTH(s)"}},
		{[]string{"f = TRUE", "f = true"}, []string{"f = FALSE"}},
		{[]string{"COALESCE(a, NULL)", "coalesce(a, null)"}, []string{"COALESCE(a, 0)"}},
		{[]string{"ts + INTERVAL '1' DAY", "ts + interval '1' day"}, []string{"ts + INTERVAL '1' HOUR", "ts + INTERVAL '2' DAY", "ts - INTERVAL '1' DAY"}},
		{[]string{"d > DATE '2020-01-01'", "d > date '2020-01-01'"}, []string{"d > DATE '2020-01-02'", "d > TIMESTAMP '2020-01-01 00:00:00'"}},
		{[]string{"x = X'00ff'", "x = x'00FF'"}, []string{"x = X'00fe'"}},
		{[]string{"EXTRACT(YEAR FROM d)", "extract(year from d)"}, []string{"EXTRACT(MONTH FROM d)", "EXTRACT(YEAR FROM ts)"}},
		{[]string{"FLOOR(ts TO HOUR)", "floor(ts to hour)"}, []string{"FLOOR(ts TO DAY)", "CEIL(ts TO HOUR)"}},
		{[]string{"SUBSTRING(s FROM 2 FOR 3)", "substring(s from 2 for 3)"}, []string{"SUBSTRING(s FROM 2)", "SUBSTRING(s FROM 3 FOR 2)"}},
		{[]string{"TRIM(LEADING 'x' FROM s)", "trim(leading 'x' from s)"}, []string{"TRIM(TRAILING 'x' FROM s)", "TRIM(s)"}},
		{[]string{"s || 'a'", "s||'a'"}, []string{"'a' || s", "s || 'A'"}},
		{[]string{"m * 2", "m*2"}, []string{"m * 2.0", "m / 2"}},
		{[]string{`"a" % 2`, "a % 2"}, []string{"MOD(b, 2)"}},
	} {
		plan := func(shown string) error {
			_, err := Plan(table+"SELECT "+shown+" AS e, COUNT(*) AS n FROM t GROUP BY "+test.forms[0], nil, Options{})
			return err
		}
		for _, same := range test.forms {
			if err := plan(same); err != nil {
				t.Errorf("%s GROUP BY %s: %v", same, test.forms[0], err)
			}
		}
		for _, other := range test.others {
			if err := plan(other); err == nil || !strings.Contains(err.Error(), "neither in GROUP BY nor in an aggregate") {
				t.Errorf("%s GROUP BY %s: %v", other, test.forms[0], err)
			}
		}
	}
}
