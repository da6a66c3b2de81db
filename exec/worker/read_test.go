package worker

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"weir"
	"weir/exec"
	"weir/exec/deploy"
)

// TestMerge: parts that left rows out bound the page, so that paging loses nothing.
func TestMerge(t *testing.T) {
	t.Parallel()
	part := func(more bool, sorts ...string) deploy.Part {
		p := deploy.Part{More: more, Total: 10}
		for _, s := range sorts {
			p.Rows = append(p.Rows, deploy.Row{Row: json.RawMessage(`"` + s + `"`), Sort: []byte(s)})
		}
		return p
	}
	for _, c := range []struct {
		parts []deploy.Part
		limit int
		want  string
		next  string
	}{
		{[]deploy.Part{part(false, "a", "d"), part(false, "b", "c")}, 10, "a b c d", ""},
		{[]deploy.Part{part(false, "a", "d"), part(false, "b", "c")}, 4, "a b c d", ""},
		{[]deploy.Part{part(false, "a", "d"), part(false, "b", "c")}, 3, "a b c", "c"},
		{[]deploy.Part{part(true, "a", "c"), part(false, "b", "d", "e")}, 10, "a b c", "c"},
		{[]deploy.Part{part(true, "a", "c"), part(true, "b", "d")}, 10, "a b c", "c"},
		{[]deploy.Part{part(true, "a", "c"), part(true, "b", "d")}, 2, "a b", "b"},
		{[]deploy.Part{part(false), part(false)}, 2, "", ""},
	} {
		page := merge(c.parts, deploy.Query{Limit: c.limit, OrderBy: []deploy.Order{{Column: "s"}}})
		var got []string
		for _, r := range page.Rows {
			got = append(got, strings.Trim(string(r), `"`))
		}
		if strings.Join(got, " ") != c.want || string(page.Next) != c.next || page.Total != int64(10*len(c.parts)) {
			t.Errorf("limit %d: %v, next %q, total %d; want %s, next %q", c.limit, got, page.Next, page.Total, c.want, c.next)
		}
	}
}

// TestPartFits: a part is cut to size, with the version of the last change in it.
func TestPartFits(t *testing.T) {
	t.Parallel()
	page := exec.Page{Version: 105, Total: 5}
	for i := range 5 {
		page.Rows = append(page.Rows, exec.Row{Op: "+I", JSON: fmt.Appendf(nil, `{"k":%d}`, i)})
	}
	if p := part(weir.TaskID{}, page, exec.Query{Since: 100, Bytes: 1 << 20}); len(p.Rows) != 5 || p.Version != 105 || p.More {
		t.Errorf("whole: %d rows, version %d, more %v", len(p.Rows), p.Version, p.More)
	}
	if p := part(weir.TaskID{}, page, exec.Query{Since: 100, Bytes: 90}); len(p.Rows) != 2 || p.Version != 102 || !p.More {
		t.Errorf("cut: %d rows, version %d, more %v", len(p.Rows), p.Version, p.More)
	}
	if p := part(weir.TaskID{}, page, exec.Query{Since: 100, Bytes: 1}); len(p.Rows) != 1 || p.Version != 101 || !p.More {
		t.Errorf("one row at least: %d rows, version %d, more %v", len(p.Rows), p.Version, p.More)
	}
	page.Full = true
	if p := part(weir.TaskID{}, page, exec.Query{Since: 100, Bytes: 90}); len(p.Rows) != 2 || p.Version != 105 || !p.More {
		t.Errorf("a table: %d rows, version %d, more %v", len(p.Rows), p.Version, p.More)
	}
}

// TestRowSize: no row takes more in a message than it says.
func TestRowSize(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "plain", "<a href='&'>", "\u2028\u2029€", "\u2027"} {
		for sort := range 5 {
			row := exec.Row{Op: "+I", JSON: []byte(`{"s":"` + text + `"}`), Sort: make([]byte, sort)}
			p := part(weir.TaskID{}, exec.Page{Rows: []exec.Row{row}}, exec.Query{Bytes: 1})
			message, err := json.Marshal(p.Rows)
			if err != nil || len(message) > row.Size()+2 || len(message) < row.Size()-20 {
				t.Errorf("%q: %d bytes, said to be %d: %v", text, len(message), row.Size(), err)
			}
		}
	}
}
