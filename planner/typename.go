package planner

import (
	"weir/planner/expr"
	"weir/planner/sql"
)

// maxFraction is how many digits of a second a time has at most.
const maxFraction = 6

// bindType gives the meaning of a type's name, or the type of NULL, which fits
// everywhere, after saying what is wrong with it.
func bindType(t *sql.TypeName, found *problems) expr.Type {
	if kind := plainKind(t.Name); kind != expr.Null {
		if len(t.Args) > 0 {
			hint := "write " + t.Name
			if kind == expr.String {
				hint = "write STRING: a string has any length"
			}
			found.add(t, CodeUnsupported, hint, "the type %s is not supported", t)
		}
		return expr.Type{Kind: kind}
	}
	switch t.Name {
	case "TIMESTAMP":
		return timeType(t, expr.Timestamp, found)
	case "TIMESTAMP_LTZ":
		return timeType(t, expr.TimestampLTZ, found)
	case "DECIMAL", "NUMERIC":
		return decimalType(t, found)
	case "INTERVAL", "INTERVAL DAY TO SECOND":
		return expr.Type{Kind: expr.Interval}
	case "INTERVAL YEAR TO MONTH":
		return expr.Type{Kind: expr.MonthInterval}
	}
	refuseType(t, found)
	return expr.Type{Kind: expr.Null}
}

// plainKind gives the kind of a type without arguments, or Null.
func plainKind(name string) expr.Kind {
	switch name {
	case "BOOLEAN":
		return expr.Boolean
	case "INT", "INTEGER":
		return expr.Int
	case "BIGINT":
		return expr.BigInt
	case "DOUBLE":
		return expr.Double
	case "STRING", "VARCHAR", "TEXT":
		return expr.String
	case "BYTES":
		return expr.Bytes
	case "DATE":
		return expr.Date
	}
	return expr.Null
}

func timeType(t *sql.TypeName, kind expr.Kind, found *problems) expr.Type {
	precision := maxFraction
	if len(t.Args) > 0 {
		precision = t.Args[0]
	}
	if precision > maxFraction || len(t.Args) > 1 {
		found.add(t, CodeUnsupported, "write "+t.Name+"(6), which is in microseconds", "the type %s is not supported", t)
		precision = maxFraction
	}
	return expr.Type{Kind: kind, Precision: precision}
}

// decimalType reads DECIMAL(p, s): s is 0 where it is left out, as in PostgreSQL; p has
// to be there, because a DECIMAL without it means one thing in PostgreSQL (any number
// of digits) and another in Flink (ten, and none behind the point).
func decimalType(t *sql.TypeName, found *problems) expr.Type {
	switch {
	case len(t.Args) == 0:
		found.add(t, CodeType, "write DECIMAL(38, s) for s digits behind the point", "a %s needs its number of digits", t.Name)
	case len(t.Args) > 2:
		found.add(t, CodeType, "write DECIMAL(p, s)", "the type %s has too many numbers", t)
	case t.Args[0] < 1 || t.Args[0] > maxDigits:
		found.add(t, CodeUnsupported, "write DECIMAL(38, s) at most", "the type %s is not supported: a DECIMAL has 1 to 38 digits", t)
	case len(t.Args) == 2 && t.Args[1] > t.Args[0]:
		found.add(t, CodeType, "", "the type %s has more digits behind the point than in all", t)
	default:
		scale := 0
		if len(t.Args) == 2 {
			scale = t.Args[1]
		}
		return expr.Type{Kind: expr.Decimal, Precision: t.Args[0], Scale: scale}
	}
	return expr.Type{Kind: expr.Null}
}

func refuseType(t *sql.TypeName, found *problems) {
	instead := map[string]string{
		"TINYINT": "INT", "SMALLINT": "INT", "INT2": "INT", "INT4": "INT", "INT8": "BIGINT", "LONG": "BIGINT", "BOOL": "BOOLEAN",
		"FLOAT": "DOUBLE", "REAL": "DOUBLE", "FLOAT8": "DOUBLE", "CHAR": "STRING", "CHARACTER": "STRING", "UUID": "STRING", "JSON": "STRING", "JSONB": "STRING",
		"TIMESTAMPTZ": "TIMESTAMP_LTZ", "DATETIME": "TIMESTAMP", "BINARY": "BYTES", "VARBINARY": "BYTES", "BLOB": "BYTES", "BYTEA": "BYTES",
		"TIME": "", "TIMETZ": "", "TIME_LTZ": "", "ARRAY": "", "MAP": "", "ROW": "", "MULTISET": "", "RAW": "",
	}
	use, known := instead[t.Name]
	if !known {
		names := []string{
			"BOOLEAN", "INT", "BIGINT", "DOUBLE", "DECIMAL", "STRING", "BYTES", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "INTERVAL", "INTEGER", "VARCHAR", "TEXT",
		}
		found.add(t, CodeType, hints(suggestion(t.Name, names), "the types are BOOLEAN, INT, BIGINT, DOUBLE, DECIMAL, STRING, BYTES, DATE, TIMESTAMP, TIMESTAMP_LTZ and INTERVAL"),
			"unknown type %s", t.Name)
		return
	}
	hint := ""
	if use != "" {
		hint = "write " + use
	}
	found.add(t, CodeUnsupported, hint, "the type %s is not supported", t)
}
