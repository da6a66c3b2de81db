package exec

import (
	"encoding/base64"
	"testing"

	"weir/exec/batch"
	"weir/planner/expr"
)

// TestTexts pins the texts of the types that are no JSON numbers.
func TestTexts(t *testing.T) {
	t.Parallel()
	const micros = 1_511_571_600_500_000
	for _, c := range []struct {
		kind expr.Kind
		n    int64
		want string
	}{
		{expr.Date, 17495, "2017-11-25"},
		{expr.Date, -719162, "0001-01-01"},
		{expr.Timestamp, micros, "2017-11-25T01:00:00.5"},
		{expr.Timestamp, -1, "1969-12-31T23:59:59.999999"},
		{expr.TimestampLTZ, micros, "2017-11-25T01:00:00.5Z"},
		{expr.TimestampLTZ, 0, "1970-01-01T00:00:00Z"},
		{expr.Interval, 93_784_500_000, "1 day 02:03:04.5"},
		{expr.Interval, -93_784_500_000, "-1 days -02:03:04.5"},
		{expr.Interval, 0, "00:00:00"},
		{expr.MonthInterval, 14, "1 year 2 mons"},
	} {
		v := batch.Vector{Physical: batch.Ints, Ints: []int64{c.n}}
		typ := expr.Type{Kind: c.kind}
		if got := string(AppendText(nil, typ, &v, 0)); got != c.want {
			t.Errorf("%v %d: %s, want %s", typ, c.n, got, c.want)
		}
		if got := string(AppendJSON(nil, typ, &v, 0)); got != `"`+c.want+`"` {
			t.Errorf("%v %d: %s", typ, c.n, got)
		}
	}
	v := batch.Vector{Physical: batch.Strings}
	v.AppendString("\x00\xff\xfe a")
	want := `"` + base64.StdEncoding.EncodeToString([]byte("\x00\xff\xfe a")) + `"`
	if got := string(AppendJSON(nil, expr.Type{Kind: expr.Bytes}, &v, 0)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
