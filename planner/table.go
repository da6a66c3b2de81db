package planner

import (
	"fmt"
	"slices"
	"strings"

	"weir/planner/expr"
	"weir/planner/plan"
	"weir/planner/sql"
)

// A table is a CREATE TABLE that has been checked.
type table struct {
	plan.Table
	def           *sql.CreateTable
	bounded       bool    // as a source, it ends
	rowsPerSecond float64 // as a source; 0: not paced
	fromCatalog   bool
}

// bindTable checks a CREATE TABLE: its columns, its types and its options. It returns
// a table even where something is wrong, so that more can be found.
func bindTable(def *sql.CreateTable, found *problems) *table {
	t := &table{def: def, Table: plan.Table{Name: def.Name.Name, Columns: []plan.Column{}}}
	for _, c := range def.Columns {
		t.addColumn(c, found)
	}
	if w := def.Watermark; w != nil {
		found.add(w, CodeUnsupported, "leave it out: windows are not supported yet", "WATERMARK is not supported")
	}
	if k := def.PrimaryKey; k != nil {
		found.add(k, CodeUnsupported, "leave it out: no connector needs it yet", "PRIMARY KEY is not supported")
	}
	bindOptions(t, found)
	return t
}

func (t *table) addColumn(c *sql.Column, found *problems) {
	if i := t.column(c.Name.Name); i >= 0 {
		found.add(c.Name, CodeName, "", "table %s has two columns named %s%s", t.Name, t.Columns[i].Name, sameButForCase(t.Columns[i].Name, c.Name.Name))
		return
	}
	col := plan.Column{Name: c.Name.Name, NotNull: c.NotNull}
	if c.As != nil {
		found.add(c, CodeUnsupported, "write the expression where you use the column", "the computed column %s is not supported", c.Name.Name)
		col.Type = expr.Type{Kind: expr.Null}
	} else {
		col.Type = bindType(c.Type, found)
	}
	t.Columns = append(t.Columns, col)
}

func sameButForCase(a, b string) string {
	if a == b {
		return ""
	}
	return fmt.Sprintf(" (%s: names that differ only in case are the same)", b)
}

// column returns the index of the column of that name, compared without case, or -1.
func (t *table) column(name string) int {
	return slices.IndexFunc(t.Columns, func(c plan.Column) bool { return sameName(c.Name, name) })
}

func (t *table) columnNames() []string {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return names
}

// sameName compares names as SQL does: case is kept but not compared.
func sameName(a, b string) bool { return folded(a) == folded(b) }

// folded is the form in which names are compared.
func folded(name string) string { return strings.ToLower(name) }

// bindType gives the meaning of a type's name, or the type of NULL, which fits
// everywhere, after saying what is wrong with it.
func bindType(t *sql.TypeName, found *problems) expr.Type {
	plainKinds := map[string]expr.Kind{
		"BOOLEAN": expr.Boolean, "INT": expr.Int, "INTEGER": expr.Int, "BIGINT": expr.BigInt, "DOUBLE": expr.Double,
		"STRING": expr.String, "VARCHAR": expr.String, "TEXT": expr.String,
	}
	if kind, ok := plainKinds[t.Name]; ok {
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
	case "TIMESTAMP_LTZ":
		return timestampType(t, found)
	case "DECIMAL", "NUMERIC":
		return decimalType(t, found)
	}
	refuseType(t, found)
	return expr.Type{Kind: expr.Null}
}

func timestampType(t *sql.TypeName, found *problems) expr.Type {
	precision := 6
	if len(t.Args) > 0 {
		precision = t.Args[0]
	}
	if precision > 6 || len(t.Args) > 1 {
		found.add(t, CodeUnsupported, "write TIMESTAMP_LTZ(6), which is in microseconds", "the type %s is not supported", t)
		precision = 6
	}
	return expr.Type{Kind: expr.TimestampLTZ, Precision: precision}
}

func decimalType(t *sql.TypeName, found *problems) expr.Type {
	if len(t.Args) == 0 || len(t.Args) > 2 || t.Args[0] != 38 || len(t.Args) == 2 && t.Args[1] > 38 {
		found.add(t, CodeUnsupported, "write DECIMAL(38, s), the type of sums", "the type %s is not supported", t)
		return expr.Type{Kind: expr.Null}
	}
	if len(t.Args) == 1 {
		return expr.DecimalType(0)
	}
	return expr.DecimalType(t.Args[1])
}

func refuseType(t *sql.TypeName, found *problems) {
	instead := map[string]string{
		"TINYINT": "INT", "SMALLINT": "INT", "INT2": "INT", "INT4": "INT", "INT8": "BIGINT", "LONG": "BIGINT", "BOOL": "BOOLEAN",
		"FLOAT": "DOUBLE", "REAL": "DOUBLE", "FLOAT8": "DOUBLE", "CHAR": "STRING", "CHARACTER": "STRING", "UUID": "STRING", "JSON": "STRING",
		"TIMESTAMP": "TIMESTAMP_LTZ", "TIMESTAMPTZ": "TIMESTAMP_LTZ", "DATETIME": "TIMESTAMP_LTZ",
		"DATE": "", "TIME": "", "TIMETZ": "", "TIME_LTZ": "", "BYTES": "", "BINARY": "", "VARBINARY": "", "BLOB": "", "INTERVAL": "",
		"ARRAY": "", "MAP": "", "ROW": "", "MULTISET": "", "RAW": "", "JSONB": "",
	}
	use, known := instead[t.Name]
	if !known {
		names := []string{"BOOLEAN", "INT", "BIGINT", "DOUBLE", "DECIMAL", "STRING", "TIMESTAMP_LTZ", "INTEGER", "VARCHAR", "TEXT"}
		found.add(t, CodeType, hints(suggestion(t.Name, names), "the types are BOOLEAN, INT, BIGINT, DOUBLE, STRING and TIMESTAMP_LTZ"), "unknown type %s", t.Name)
		return
	}
	hint := ""
	if use != "" {
		hint = "write " + use
	}
	found.add(t, CodeUnsupported, hint, "the type %s is not supported", t)
}
