package planner

import (
	"fmt"
	"strings"
	"testing"
)

// TestTooManyTables: a job reads as many tables and views as it may, counted as often as
// they are named, and a small script cannot ask for a million.
func TestTooManyTables(t *testing.T) {
	t.Parallel()
	const table = "CREATE TABLE t (a INT) WITH ('connector' = 'datagen');\n"
	var views strings.Builder
	views.WriteString("CREATE VIEW v0 AS SELECT a FROM t UNION ALL SELECT a FROM t;\n")
	for i := range 30 { // 2^31 tables
		fmt.Fprintf(&views, "CREATE VIEW v%d AS SELECT a FROM v%d UNION ALL SELECT a FROM v%d;\n", i+1, i, i)
	}
	for name, script := range map[string]string{
		"by name":  table + "SELECT a FROM t" + strings.Repeat(" UNION ALL SELECT a FROM t", maxRead),
		"by views": table + views.String() + "SELECT a FROM v30",
	} {
		_, err := Plan(script, nil, Options{})
		if err == nil || !strings.Contains(err.Error(), "the job reads more than 1000 tables and views") {
			t.Errorf("%s: %.300v", name, err)
		}
	}
	if _, err := Plan(table+"SELECT a FROM t"+strings.Repeat(" UNION ALL SELECT a FROM t", maxRead-1), nil, Options{}); err != nil {
		t.Errorf("as many as it may: %v", err)
	}
}
