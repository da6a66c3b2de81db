package difftest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"weir/planner/expr"
)

// An answer is what a query gave: rows in a normal form, or the class of its error.
type answer struct {
	types []string
	rows  []string
	class string // "": rows; "refused": before it ran; "failed": by a value
	err   string
}

// postgres runs a query.
func postgres(ctx context.Context, conn *pgx.Conn, q query) (answer, error) {
	reader := conn.PgConn().ExecParams(ctx, q.p, nil, nil, nil, nil)
	fields := reader.FieldDescriptions()
	r := reader.Read()
	err := r.Err
	var refusal *pgconn.PgError
	switch {
	case errors.As(err, &refusal):
		return answer{class: classOf(refusal.Code), err: refusal.Code + " " + refusal.Message}, nil
	case err != nil:
		return answer{}, err
	}
	a := answer{}
	for _, f := range fields {
		a.types = append(a.types, typeOf(f.DataTypeOID))
	}
	for _, row := range r.Rows {
		var values []string
		for i, v := range row {
			if v == nil {
				values = append(values, "NULL")
				continue
			}
			values = append(values, normal(a.types[i], string(v), q.outputs[i].loose))
		}
		a.rows = append(a.rows, strings.Join(values, " | "))
	}
	slices.Sort(a.rows)
	return a, nil
}

// classOf tells a value's fault (SQLSTATE class 22) from a refusal.
func classOf(code string) string {
	if strings.HasPrefix(code, "22") {
		return "failed"
	}
	return "refused"
}

func typeOf(oid uint32) string {
	names := map[uint32]string{
		16: "boolean", 23: "integer", 20: "bigint", 701: "double precision", 1700: "numeric", 25: "text", 17: "bytea",
		1082: "date", 1114: "timestamp", 1184: "timestamptz", 1186: "interval",
	}
	if n, ok := names[oid]; ok {
		return n
	}
	return fmt.Sprintf("oid %d", oid)
}

// weirTypeOf names a type of Weir's as PostgreSQL does.
func weirTypeOf(t expr.Type) string {
	return map[expr.Kind]string{
		expr.Boolean: "boolean", expr.Int: "integer", expr.BigInt: "bigint", expr.Double: "double precision", expr.Decimal: "numeric", expr.String: "text",
		expr.Bytes: "bytea", expr.Date: "date", expr.Timestamp: "timestamp", expr.TimestampLTZ: "timestamptz", expr.Interval: "interval", expr.MonthInterval: "interval",
	}[t.Kind]
}

// normal gives one spelling to values that are the same.
func normal(typ, v string, loose bool) string {
	switch typ {
	case "boolean":
		return v[:1]
	case "double precision":
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return v
		}
		f += 0 // Weir shows -0 as 0
		if loose {
			return strconv.FormatFloat(f, 'g', 9, 64)
		}
		return strconv.FormatFloat(f, 'g', -1, 64)
	case "numeric":
		if strings.Contains(v, ".") {
			v = strings.TrimRight(strings.TrimRight(v, "0"), ".")
		}
		if v == "-0" {
			v = "0"
		}
	case "timestamptz":
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999-07", "2006-01-02 15:04:05.999999999-07:00", "2006-01-02 15:04:05.999999999-07:00:00"} {
			if at, err := time.Parse(layout, v); err == nil {
				return at.UTC().Format("2006-01-02 15:04:05.999999")
			}
		}
	case "timestamp":
		v = strings.Replace(v, "T", " ", 1)
		if strings.Contains(v, ".") {
			v = strings.TrimRight(v, "0")
		}
	case "interval":
		return microseconds(v)
	case "text":
		return strconv.Quote(v)
	}
	return v
}

// microseconds reads PostgreSQL's text of an interval of days and seconds: "1 day
// -00:00:01.5" and "23:59:58.5" are one size, and equal on both sides.
func microseconds(v string) string {
	var total int64
	fields := strings.Fields(v)
	for i := 0; i < len(fields); i++ {
		if n, err := strconv.ParseInt(fields[i], 10, 64); err == nil && i+1 < len(fields) && strings.HasPrefix(fields[i+1], "day") {
			total += n * 86_400_000_000
			i++
			continue
		}
		clock, negative := strings.CutPrefix(fields[i], "-")
		var hours, minutes int64
		var seconds float64
		if n, err := fmt.Sscanf(strings.ReplaceAll(clock, ":", " "), "%d %d %f", &hours, &minutes, &seconds); n != 3 || err != nil {
			return v
		}
		micros := (hours*60+minutes)*60_000_000 + int64(seconds*1e6+0.5)
		if negative {
			micros = -micros
		}
		total += micros
	}
	return fmt.Sprint(total, " µs")
}
