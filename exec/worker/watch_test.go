package worker

import (
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestWatch runs scripts over the watch. A cut-off is seen tick by tick, a second apart:
//
//	tick TIME [cut-off]     one look
//	run TIME [cut-off]      a look each second until then
//	answered [nobody]       the question has ended
func TestWatch(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/watch", func(t *testing.T, path string) {
		var m watch
		epoch := time.Now()
		var at time.Duration
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out []string
			say := func(todo []watchDo) {
				for _, do := range todo {
					out = append(out, at.String()+" "+do.String())
				}
			}
			until := at
			if d.Cmd != "answered" {
				var err error
				if until, err = time.ParseDuration(d.CmdArgs[0].Key); err != nil {
					d.Fatalf(t, "%v", err)
				}
			}
			switch d.Cmd {
			case "tick":
				at = until
				say(m.tick(epoch.Add(at), !d.HasArg("cut-off")))
			case "run":
				for at < until {
					at += time.Second
					say(m.tick(epoch.Add(at), !d.HasArg("cut-off")))
				}
			case "answered":
				say(m.answered(!d.HasArg("nobody")))
			}
			return strings.Join(append(out, ""), "\n")
		})
	})
}
