package metastore

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// layout is a time as SQLite keeps it: fixed width in UTC, so that text compares as
// time does. PostgreSQL reads it too.
const layout = "2006-01-02T15:04:05.000000Z"

// now is the database's clock.
const now = "(SELECT now FROM weir_clock)"

// An instant is a time.Time in a column; the zero time is NULL.
type instant time.Time

// Value implements driver.Valuer.
func (i instant) Value() (driver.Value, error) {
	if time.Time(i).IsZero() {
		return nil, nil
	}
	return time.Time(i).UTC().Format(layout), nil
}

// Scan implements sql.Scanner.
func (i *instant) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*i = instant{}
	case time.Time:
		*i = instant(v.UTC())
	case string:
		t, err := time.Parse(layout, v)
		if err != nil {
			return fmt.Errorf("time %q: %w", v, err)
		}
		*i = instant(t)
	default:
		return fmt.Errorf("time of type %T", v)
	}
	return nil
}

// A text is JSON, as it is, in a TEXT column; empty is NULL.
type text json.RawMessage

// Value implements driver.Valuer.
func (t text) Value() (driver.Value, error) {
	if len(t) == 0 {
		return nil, nil
	}
	return string(t), nil
}

// Scan implements sql.Scanner.
func (t *text) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*t = nil
	case string:
		*t = text(v)
	case []byte:
		*t = append(text(nil), v...)
	default:
		return fmt.Errorf("JSON of type %T", v)
	}
	return nil
}

// A document is a value of ours as JSON in a TEXT column; nil is NULL.
type document[T any] struct{ value **T }

func doc[T any](value **T) document[T] { return document[T]{value} }

// Value implements driver.Valuer.
func (d document[T]) Value() (driver.Value, error) {
	if *d.value == nil {
		return nil, nil
	}
	b, err := json.Marshal(*d.value)
	return string(b), err
}

// Scan implements sql.Scanner.
func (d document[T]) Scan(v any) error {
	*d.value = nil
	var t text
	if err := t.Scan(v); err != nil || len(t) == 0 {
		return err
	}
	return json.Unmarshal(t, d.value)
}

// insert gives the statement that inserts a row with columns, as "a, b, c", by
// placeholders in that order.
func insert(table, columns string) string {
	n := strings.Count(columns, ",") + 1
	return "INSERT INTO " + table + " (" + columns + ") VALUES (" + placeholders(1, n) + ")"
}

// placeholders gives n placeholders from $from.
func placeholders(from, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("$" + strconv.Itoa(from+i))
	}
	return b.String()
}

// A where collects conditions and their arguments.
type where struct {
	conditions []string
	args       []any
}

// add adds a condition in which each ? stands for the next of args.
func (w *where) add(condition string, args ...any) {
	for _, arg := range args {
		w.args = append(w.args, arg)
		condition = strings.Replace(condition, "?", "$"+strconv.Itoa(len(w.args)), 1)
	}
	w.conditions = append(w.conditions, condition)
}

// in adds: column is one of values.
func (w *where) in(column string, values []any) {
	marks := placeholders(len(w.args)+1, len(values))
	w.args = append(w.args, values...)
	w.conditions = append(w.conditions, column+" IN ("+marks+")")
}

// limit gives the LIMIT clause; 0 means none.
func (w *where) limit(n int) string {
	if n <= 0 {
		return ""
	}
	w.args = append(w.args, n)
	return " LIMIT $" + strconv.Itoa(len(w.args))
}

// skip gives the OFFSET clause, which follows limit's.
func (w *where) skip(n int) string {
	if n <= 0 {
		return ""
	}
	w.args = append(w.args, n)
	return " OFFSET $" + strconv.Itoa(len(w.args))
}

// String gives the WHERE clause.
func (w *where) String() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conditions, " AND ")
}

func anys[T ~string](values []T) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}
