package checkpoint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir"
)

// CriticalPath says in one sentence which task was the last to acknowledge a checkpoint
// and where the time went: "3.2 s: global_count subtask 3 was last: 2.9 s until the
// barrier from source subtask 1 came (aligning 2.7 s), 20 ms cut, 310 ms storing 12 MiB".
// Where that barrier came from a task that had waited itself, the wait is followed back to
// the source. It is empty where no ack says when it came.
func CriticalPath(r Record, tasks []Task) string {
	if len(r.Acks) == 0 {
		return ""
	}
	last := slices.MaxFunc(r.Acks, func(a, b Ack) int { return a.AckedAt.Compare(b.AckedAt) })
	if last.AckedAt.IsZero() {
		return ""
	}
	p := path{acks: map[weir.TaskID]Ack{}, tasks: tasks}
	for _, a := range r.Acks {
		p.acks[a.Task] = a
	}
	t := last.Timing
	parts := []string{p.begin(last), seconds(t.CutMS) + " cut", fmt.Sprintf("%s storing %s", seconds(t.UploadMS), size(t.NewBytes))}
	took := millis(last.AckedAt.Sub(r.TriggeredAt))
	if rest := took - t.StartDelayMS - t.AlignmentMS - t.CutMS - t.UploadMS; notable(rest, took) {
		parts = append(parts, seconds(rest)+" until its ack came")
	}
	total := millis(r.CompletedAt.Sub(r.TriggeredAt))
	if rest := total - took; notable(rest, total) {
		parts = append(parts, seconds(rest)+" writing the manifest")
	}
	return fmt.Sprintf("%s: %s was last: %s", seconds(max(total, took)), p.name(last.Task), strings.Join(parts, ", "))
}

// A path follows barriers back through the acks.
type path struct {
	acks  map[weir.TaskID]Ack
	tasks []Task
}

// begin says what a task waited for before it could snapshot.
func (p *path) begin(a Ack) string {
	t := a.Timing
	if t.LastInput == nil {
		return seconds(t.StartDelayMS+t.AlignmentMS) + " until it took the trigger"
	}
	s := fmt.Sprintf("%s until the barrier from %s came", seconds(t.StartDelayMS+t.AlignmentMS), p.name(*t.LastInput))
	if t.AlignmentMS >= 1 {
		s += fmt.Sprintf(" (aligning %s)", seconds(t.AlignmentMS))
	}
	for seen := map[weir.TaskID]bool{a.Task: true}; t.LastInput != nil && !seen[*t.LastInput]; {
		from, ok := p.acks[*t.LastInput]
		if !ok {
			break
		}
		seen[from.Task] = true
		if t = from.Timing; t.LastInput != nil {
			s += fmt.Sprintf(", which had that from %s after %s", p.name(*t.LastInput), seconds(t.StartDelayMS+t.AlignmentMS))
		} else if t.StartDelayMS >= 10 {
			s += fmt.Sprintf(", which took the trigger after %s", seconds(t.StartDelayMS))
		}
	}
	return s
}

func (p *path) name(id weir.TaskID) string { return nameOf(p.tasks, id) }

// notable reports whether a part is worth a word: a twentieth of the whole.
func notable(part, whole float64) bool { return part >= 1 && part*20 >= whole }

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// seconds gives milliseconds as "3.2 s", "310 ms" or "0.4 ms".
func seconds(ms float64) string {
	switch ms = max(ms, 0); {
	case ms >= 9_950:
		return fmt.Sprintf("%.0f s", ms/1000)
	case ms >= 999.5:
		return fmt.Sprintf("%.1f s", ms/1000)
	case ms >= 9.95:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.1f ms", ms)
	}
}

// size gives bytes as "12 MiB".
func size(bytes int64) string {
	const units = "KMGTP"
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	n, unit := float64(bytes)/1024, 0
	for n >= 1023.95 && unit < len(units)-1 {
		n, unit = n/1024, unit+1
	}
	if n < 10 {
		return fmt.Sprintf("%.1f %ciB", n, units[unit])
	}
	return fmt.Sprintf("%.0f %ciB", n, units[unit])
}
