package planner

import (
	"strings"

	"weir/planner/expr"
	"weir/planner/sql"
)

// instead gives the ways around functions of Flink and PostgreSQL that Weir does not
// have; empty: there is none.
var instead = map[string]string{
	"STRING_AGG": "", "LISTAGG": "", "GROUP_CONCAT": "", "ARRAY_AGG": "", "JSON_ARRAYAGG": "", "JSON_OBJECTAGG": "", "COLLECT": "",
	"FIRST_VALUE": "MIN(x) and MAX(x) depend on no order of arrival", "LAST_VALUE": "MIN(x) and MAX(x) depend on no order of arrival",
	"ANY_VALUE": "write MIN(x)", "MEDIAN": "", "MODE": "", "PERCENTILE": "", "PERCENTILE_CONT": "", "PERCENTILE_DISC": "", "APPROX_PERCENTILE": "",
	"STDDEV": deviation, "STDDEV_POP": deviation, "STDDEV_SAMP": deviation, "VARIANCE": deviation, "VAR_POP": deviation, "VAR_SAMP": deviation,
	"CORR": "", "COVAR_POP": "", "COVAR_SAMP": "", "BIT_AND": "", "BIT_OR": "", "BIT_XOR": "",
	"ROW_NUMBER": ranking, "RANK": ranking, "DENSE_RANK": ranking, "NTILE": ranking, "LAG": ranking, "LEAD": ranking, "NTH_VALUE": ranking,
	"TUMBLE": windows, "HOP": windows, "CUMULATE": windows, "SESSION": windows, "DESCRIPTOR": windows,
	"TUMBLE_START": windows, "TUMBLE_END": windows, "TUMBLE_ROWTIME": windows, "HOP_START": windows, "HOP_END": windows, "HOP_ROWTIME": windows,
	"SESSION_START": windows, "SESSION_END": windows, "SESSION_ROWTIME": windows, "CURRENT_WATERMARK": "",
	"UNIX_TIMESTAMP": "write CAST(FLOOR(EXTRACT(EPOCH FROM ts)) AS BIGINT)", "FROM_UNIXTIME": "write TO_TIMESTAMP_LTZ(n, 0), and DATE_FORMAT of it for text",
	"TO_DATE": "write CAST(x AS DATE), or CAST(TO_TIMESTAMP(x, 'dd.MM.yyyy') AS DATE)", "TO_CHAR": "write DATE_FORMAT(ts, 'yyyy-MM-dd') or CAST(x AS STRING)", "TO_NUMBER": "write CAST(x AS DECIMAL(38, 2))",
	"DATE_ADD": "write d + n or ts + INTERVAL '1' DAY", "DATE_SUB": "write d - n or ts - INTERVAL '1' DAY", "ADDDATE": "write d + n", "ADD_MONTHS": "write d + n * INTERVAL '1' MONTH",
	"DATEDIFF": "write d - e of two DATEs", "DATE_DIFF": "write d - e of two DATEs",
	"TIMESTAMPDIFF": "write t - u, or EXTRACT(EPOCH FROM t - u) / 60 for minutes", "TIMESTAMPADD": "write ts + INTERVAL '1' HOUR", "AGE": "write t - u",
	"DATE_BIN": "write TO_TIMESTAMP_LTZ of a rounded EXTRACT(EPOCH FROM ts), or FLOOR(ts TO HOUR)",
	"YEAR":     fields, "QUARTER": fields, "MONTH": fields, "WEEK": fields, "DAYOFYEAR": "write EXTRACT(DOY FROM ts)", "DAYOFMONTH": "write EXTRACT(DAY FROM ts)", "DAYOFWEEK": "write EXTRACT(DOW FROM ts) + 1: 1 is Sunday", "DAY": fields, "HOUR": fields, "MINUTE": fields, "SECOND": fields,
	"CURRENT_TIME": "there is no type TIME: CURRENT_TIMESTAMP is the moment", "LOCALTIME": "there is no type TIME: LOCALTIMESTAMP is the moment", "CURRENT_ROW_TIMESTAMP": "write CURRENT_TIMESTAMP",
	"CLOCK_TIMESTAMP": "write CURRENT_TIMESTAMP", "STATEMENT_TIMESTAMP": "write CURRENT_TIMESTAMP", "TRANSACTION_TIMESTAMP": "write CURRENT_TIMESTAMP", "CONVERT_TZ": "SET 'timezone' says by whose clock times are shown", "MAKE_DATE": "write CAST('2017-11-25' AS DATE)",
	"MD5": "", "SHA1": "", "SHA224": "", "SHA256": "", "SHA384": "", "SHA512": "", "SHA2": "", "HASH_CODE": "", "CRC32": "", "ENCODE": "CAST(x AS STRING) shows BYTES as \\x…", "DECODE": "CAST('\\x00ff' AS BYTES) reads digits",
	"TO_BASE64": "", "FROM_BASE64": "", "HEX": "", "UNHEX": "", "BIN": "",
	"UUID": random, "GEN_RANDOM_UUID": random, "RAND": random, "RANDOM": random, "RAND_INTEGER": random,
	"JSON_QUERY": onlyValue, "JSON_EXISTS": "write JSON_VALUE(x, path) IS NOT NULL", "JSON_OBJECT": onlyValue, "JSON_ARRAY": onlyValue, "JSON_STRING": onlyValue, "JSON_EXTRACT": "write JSON_VALUE(x, path)", "GET_JSON_OBJECT": "write JSON_VALUE(x, path)",
	"INSTR": "write POSITION(part IN text)", "LOCATE": "write POSITION(part IN text)", "STRPOS": "write POSITION(part IN text)", "CHARINDEX": "write POSITION(part IN text)",
	"INITCAP": "", "OVERLAY": "write LEFT(x, n) || part || SUBSTRING(x, m)", "TRANSLATE": "write REPLACE", "ASCII": "", "CHR": "", "FORMAT": "write CONCAT or ||", "QUOTE_LITERAL": "", "STR_TO_MAP": "", "ELT": "write CASE",
	"REGEXP": matches, "REGEXP_LIKE": matches, "REGEXP_MATCH": matches, "REGEXP_MATCHES": matches, "SIMILAR": matches, "REGEXP_COUNT": "", "REGEXP_INSTR": "", "REGEXP_SUBSTR": "write REGEXP_EXTRACT(x, pattern)", "PARSE_URL": "write REGEXP_EXTRACT",
	"NVL": "write COALESCE(x, y)", "ISNULL": "write x IS NULL", "NVL2": "write CASE WHEN x IS NULL THEN z ELSE y END", "IIF": "write IF(condition, x, y)", "ZEROIFNULL": "write COALESCE(x, 0)", "TYPEOF": "", "PG_TYPEOF": "",
	"LOG": "write LN(x), LOG10(x) or LN(x) / LN(base)", "LOG2": "write LN(x) / LN(2)", "CBRT": "write SIGN(x) * POWER(ABS(x), CAST(1 AS DOUBLE) / 3)", "DIV": "write x / y, which truncates for integers",
	"SIN": "", "COS": "", "TAN": "", "ASIN": "", "ACOS": "", "ATAN": "", "ATAN2": "", "SINH": "", "COSH": "", "TANH": "", "COT": "", "DEGREES": "write x * 180 / 3.141592653589793", "RADIANS": "write x * 3.141592653589793 / 180", "PI": "write 3.141592653589793", "E": "write EXP(1)",
	"LEN": "write CHAR_LENGTH(x)", "UCASE": "write UPPER(x)", "LCASE": "write LOWER(x)", "MID": "write SUBSTRING(x, from, length)", "CHAR": "", "SPACE": "write REPEAT(' ', n)",
	"CONTAINS": "write POSITION(part IN text) > 0", "ENDSWITH": "write RIGHT(text, CHAR_LENGTH(part)) = part", "ENDS_WITH": "write RIGHT(text, CHAR_LENGTH(part)) = part", "REGEXP_SPLIT_TO_ARRAY": "write SPLIT_INDEX(x, delimiter, n)",
	"COUNT_IF": "write COUNT(*) FILTER (WHERE condition)", "COUNTIF": "write COUNT(*) FILTER (WHERE condition)", "SUM_IF": "write SUM(x) FILTER (WHERE condition)", "SUMIF": "write SUM(x) FILTER (WHERE condition)", "JSON_AGG": "", "JSONB_AGG": "", "ARBITRARY": "write MIN(x)", "GROUP_ID": "",
	"GETDATE": "write CURRENT_TIMESTAMP", "SYSDATE": "write CURRENT_TIMESTAMP", "STRFTIME": "write DATE_FORMAT(ts, 'yyyy-MM-dd')", "SOURCE_WATERMARK": "", "IS_DIGIT": "write REGEXP_EXTRACT(x, '^[0-9]+$') IS NOT NULL", "IS_ALPHA": "write REGEXP_EXTRACT(x, '^[a-zA-Z]+$') IS NOT NULL",
	"CARDINALITY": "", "ELEMENT": "", "UNNEST": "", "GENERATE_SERIES": "a table with connector 'datagen' makes rows", "ARRAY": "", "MAP": "", "ROW": "",
	"ROLLUP": sets, "CUBE": sets,
}

const (
	deviation = "AVG(x * x) - AVG(x) * AVG(x) is the variance of all"
	sets      = "ROLLUP and CUBE stand in GROUP BY, and within one another not at all: list the sets with GROUPING SETS"
	ranking   = "OVER (a window over rows) is not supported"
	windows   = "GROUP BY FLOOR(ts TO HOUR) or DATE_TRUNC('minute', ts) groups by time"
	fields    = "write EXTRACT(YEAR FROM ts)"
	random    = "its value would differ after a restore"
	onlyValue = "JSON_VALUE(x, path) takes numbers, texts and booleans out"
	matches   = "write REGEXP_EXTRACT(x, pattern) IS NOT NULL"
)

// refuseFunction tells a function that others have from one that nobody knows.
func (s *scope) refuseFunction(e *sql.Call, name string) {
	hint, known := instead[name]
	if hint == fields {
		hint = strings.Replace(fields, "YEAR", name, 1)
	}
	if known {
		s.found.add(e, CodeUnsupported, hint, "the function %s is not supported", name)
		return
	}
	s.found.add(e.Name, CodeName, hints(suggestion(name, functionNames()), "SHOW FUNCTIONS lists them"), "unknown function %s", e.Name.Name)
}

// isOperator reports whether a function of the table is written as an operator only.
func isOperator(f *expr.Function) bool { return f.SQL == "||" || f.SQL == "LIKE" || f.SQL == "ILIKE" }

// functionNames lists the names under which functions and aggregates can be called.
func functionNames() []string {
	var names []string
	for _, f := range expr.Functions() {
		if !isOperator(&f) {
			names = append(append(names, f.SQL), f.Aliases...)
		}
	}
	for _, a := range expr.AggregateFunctions() {
		names = append(append(names, a.SQL), a.Aliases...)
	}
	return names
}
