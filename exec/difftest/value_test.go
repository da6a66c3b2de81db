package difftest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// A kind is a SQL type of the test's tables and expressions.
type kind int

const (
	boolean kind = iota
	integer
	bigint
	double
	decimal // DECIMAL(18, 2) as a column; any scale as an expression
	text
	bytea
	date
	timestamp
	timestamptz
	interval // no column has it
	kinds
)

// columnKinds are the kinds that columns have.
const columnKinds = int(interval)

// weirType and postgresType give the type's names.
func (k kind) weirType() string {
	return [...]string{"BOOLEAN", "INT", "BIGINT", "DOUBLE", "DECIMAL(18, 2)", "STRING", "BYTES", "DATE", "TIMESTAMP(6)", "TIMESTAMP_LTZ(6)", "INTERVAL DAY TO SECOND"}[k]
}

func (k kind) postgresType() string {
	return [...]string{"boolean", "integer", "bigint", "double precision", "numeric(18, 2)", "text", "bytea", "date", "timestamp", "timestamptz", "interval"}[k]
}

// pool holds the values of columns of a kind, as text in PostgreSQL's form; small pools
// make groups and equal values.
func (k kind) pool() []string {
	return [...][]string{
		boolean:     {"true", "false"},
		integer:     {"0", "1", "-1", "2", "3", "7", "10", "100", "2147483647", "-2147483648", "2147483646"},
		bigint:      {"0", "1", "-1", "5", "7", "42", "9007199254740992", "9007199254740993", "9223372036854775807", "-9223372036854775808", "-9007199254740993"},
		double:      {"0", "-0", "1", "1.5", "-2.25", "0.1", "3", "1e10", "1e-3", "NaN", "Infinity", "-Infinity"},
		decimal:     {"0.00", "1.00", "-1.50", "0.01", "19.99", "100.00", "1234567.89", "9999999999999999.99", "-9999999999999999.99"},
		text:        {"", " ", "a", "A", "a ", "b", "ab", "abc", "buy", "cart", "é", "é", "K", "K", "日本語", "👩‍👩‍👧", "x_y", "50%", "7", "007", "tab\tq\"uote", "NULL", "\\"},
		bytea:       {`\x`, `\x00`, `\x61`, `\xff00ff`, `\x616263`},
		date:        {"0001-01-01", "9999-12-31", "1969-12-31", "1970-01-01", "2017-11-25", "2017-11-26", "2016-02-29", "2000-12-31"},
		timestamp:   {"0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2017-11-25 01:02:03", "2017-11-25 01:59:59.5", "2016-02-29 12:00:00", "2017-12-31 23:00:00"},
		timestamptz: {"0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00", "1969-12-31 23:59:59.999999+00", "1970-01-01 00:00:00+00", "2017-11-25 01:02:03+00", "2017-11-25 01:59:59.5+00", "2016-02-29 12:00:00+00", "2017-12-31 23:00:00+00"},
	}[k]
}

// tame values never overflow when a few of them are added or multiplied.
func (k kind) tame() []string {
	p := k.pool()
	switch k {
	case integer:
		return p[:8]
	case bigint:
		return p[:6]
	case double:
		return p[:9]
	case decimal:
		return p[:7]
	case date:
		return p[2:]
	case timestamp, timestamptz:
		return p[2:]
	}
	return p
}

// jsonOf gives a value as the JSON source reads it.
func (k kind) jsonOf(value string) string {
	switch k {
	case boolean, integer, bigint, decimal:
		return value
	case double:
		if f, err := strconv.ParseFloat(value, 64); err == nil && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return `"` + value + `"`
		}
		return value
	case bytea:
		raw, err := hex.DecodeString(strings.TrimPrefix(value, `\x`))
		if err != nil {
			panic(err)
		}
		return `"` + base64.StdEncoding.EncodeToString(raw) + `"`
	case timestamptz:
		return `"` + strings.Replace(strings.TrimSuffix(value, "+00"), " ", "T", 1) + `Z"`
	}
	quoted, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}

// literal gives a value as SQL.
func (k kind) literal(value string) term {
	quoted := "'" + strings.ReplaceAll(value, "'", "''") + "'"
	t := term{k: k}
	switch k {
	case boolean:
		t.both(strings.ToUpper(value))
	case integer:
		if value == "-2147483648" {
			t.w, t.p = "CAST('-2147483648' AS INT)", "'-2147483648'::integer"
			return t
		}
		t.both(value)
	case bigint:
		t.w, t.p = "CAST("+value+" AS BIGINT)", "CAST('"+value+"' AS bigint)"
		if value == "-9223372036854775808" {
			t.w = "CAST('" + value + "' AS BIGINT)"
		}
	case double:
		t.w, t.p = "CAST("+quoted+" AS DOUBLE)", quoted+"::float8"
	case decimal:
		t.scale = 2
		t.w, t.p = "CAST("+quoted+" AS DECIMAL(18, 2))", quoted+"::numeric(18, 2)"
	case text:
		t.w, t.p = quoted, quoted+"::text"
	case bytea:
		t.w, t.p = "X'"+strings.TrimPrefix(value, `\x`)+"'", quoted+"::bytea"
	case date:
		t.both("DATE " + quoted)
	case timestamp:
		t.both("TIMESTAMP " + quoted)
	case timestamptz:
		t.w, t.p = "TIMESTAMP_LTZ "+quoted, "TIMESTAMPTZ "+quoted
	}
	return t
}

// A column of a table.
type column struct {
	name string
	kind kind
	tame bool
}

// A table and its rows; a value that is absent from a row is NULL.
type table struct {
	name    string
	columns []column
	rows    [][]*string
	// spoiled is a row whose first STRING is no UTF-8 in the file, and NULL in
	// PostgreSQL, which cannot hold it; -1: none.
	spoiled int
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// newTable makes a table of one column of every kind, some of them twice. Zoned: no
// moment is in another year by the zone's clock.
func newTable(r *rand.Rand, name string, zoned bool) *table {
	t := &table{name: name, spoiled: -1}
	letters := [...]string{"b", "i", "l", "d", "m", "s", "y", "dt", "ts", "tz"}
	for k := range columnKinds {
		t.columns = append(t.columns, column{name: letters[k], kind: kind(k), tame: r.IntN(2) > 0})
		if k == int(integer) || k == int(text) || r.IntN(4) == 0 {
			t.columns = append(t.columns, column{name: letters[k] + "2", kind: kind(k), tame: true})
		}
	}
	n := r.IntN(50)
	if r.IntN(12) == 0 {
		n = 0
	}
	for range n {
		row := make([]*string, len(t.columns))
		for i, c := range t.columns {
			pool := c.kind.pool()
			if c.tame || zoned && c.kind >= date {
				pool = c.kind.tame()
			}
			if r.IntN(6) > 0 {
				v := pick(r, pool)
				row[i] = &v
			}
		}
		t.rows = append(t.rows, row)
	}
	if n > 0 && r.IntN(15) == 0 {
		t.spoiled = r.IntN(n)
		t.rows[t.spoiled][t.text()] = nil
	}
	return t
}

// text is the index of the first column of type STRING, whose name is s.
func (t *table) text() int {
	return slices.IndexFunc(t.columns, func(c column) bool { return c.kind == text })
}

// weirTable gives the CREATE TABLE over the folder with the rows.
func (t *table) weirTable(folder string) string {
	var list []string
	for _, c := range t.columns {
		list = append(list, c.name+" "+c.kind.weirType())
	}
	return "CREATE TABLE " + t.name + " (" + strings.Join(list, ", ") + ") WITH ('connector' = 'filesystem', 'path' = '" + folder + "', 'format' = 'json');\n"
}

// postgresTable gives the CREATE TABLE and the INSERT.
func (t *table) postgresTable() string {
	var list []string
	for _, c := range t.columns {
		list = append(list, c.name+" "+c.kind.postgresType())
	}
	b := "DROP TABLE IF EXISTS " + t.name + "; CREATE TABLE " + t.name + " (" + strings.Join(list, ", ") + ");\n"
	if len(t.rows) == 0 {
		return b
	}
	var rows []string
	for _, row := range t.rows {
		var values []string
		for _, v := range row {
			if v == nil {
				values = append(values, "NULL")
			} else {
				values = append(values, "'"+strings.ReplaceAll(*v, "'", "''")+"'")
			}
		}
		rows = append(rows, "("+strings.Join(values, ", ")+")")
	}
	return b + "INSERT INTO " + t.name + " VALUES\n" + strings.Join(rows, ",\n") + ";\n"
}

// json gives the rows from, to as JSON lines; a NULL is null or no field at all.
func (t *table) json(from, to int) string {
	var b strings.Builder
	for n, row := range t.rows[from:to] {
		var fields []string
		for i, c := range t.columns {
			switch {
			case from+n == t.spoiled && i == t.text():
				fields = append(fields, `"`+c.name+"\":\"a\xff\"")
			case row[i] != nil:
				fields = append(fields, `"`+c.name+`":`+c.kind.jsonOf(*row[i]))
			case (n+i)%2 == 0:
				fields = append(fields, `"`+c.name+`":null`)
			}
		}
		b.WriteString("{" + strings.Join(fields, ",") + "}\n")
	}
	return b.String()
}
