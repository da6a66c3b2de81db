package job_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir"
	"weir/server/job"
	"weir/server/job/jobtest"
	"weir/transport"
)

// TestSmallMaxPayload: where NATS takes little, rows are spread over more frames, and a row
// that no frame carries is refused by name, wherever its reader runs.
func TestSmallMaxPayload(t *testing.T) {
	t.Parallel()
	const most = 24 << 10
	c := jobtest.NewOn(t, transport.ServerOptions{MaxPayload: most})
	s := c.Server("s1")
	c.Worker("w1", 1)
	c.Worker("w2", 1)
	c.Heard(s, 2)
	for _, test := range []struct {
		name string
		last int // bytes of the last row
		want weir.Status
	}{
		{"fits", most / 2, weir.StatusFinished},
		{"large", most, weir.StatusFailed},
	} {
		var text strings.Builder
		for i := range 200 {
			size := 1000
			if i == 199 {
				size = test.last
			}
			fmt.Fprintf(&text, "{\"k\":\"%03d%s\"}\n", i, strings.Repeat("x", size))
		}
		path := filepath.Join(c.Dir, test.name+".json")
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		spec := c.Spec(test.name, "CREATE TABLE s (k STRING) WITH ('connector' = 'filesystem', 'path' = '"+path+"', 'format' = 'json'); "+
			"SELECT SUM(n) AS n FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k)", 2)
		spec.Restart = json.RawMessage(`{"strategy":"none"}`)
		if _, err := s.Submit(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		j := c.Await(s, test.name, weir.StatusFinished, weir.StatusFailed)
		switch {
		case j.Status != test.want:
			t.Errorf("%s: %s, %+v", test.name, j.Status, j.Failure)
		case test.want == weir.StatusFailed:
			if j.Failure.Reason != "row_error" || !strings.Contains(j.Failure.Message, "that a frame carries") {
				t.Errorf("%s: %+v", test.name, j.Failure)
			}
		default:
			if got := results(t, s, test.name); len(got) != 1 || got[0] != `{"n":200}` {
				t.Errorf("%s: %v", test.name, got)
			}
		}
	}
}

func results(t *testing.T, s *job.Service, name string) (out []string) {
	t.Helper()
	page, err := s.Results(t.Context(), name, job.ResultQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Rows {
		out = append(out, string(r))
	}
	return out
}
