package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A fault is what happens to one call.
type fault string

// The faults of a call.
const (
	none      fault = ""
	before    fault = "before"     // an error instead of the work
	after     fault = "after"      // an error although the work was done
	slow      fault = "slow"       // it takes longer than a checkpoint may
	dieBefore fault = "die-before" // the caller's process dies, the work is not done
	dieAfter  fault = "die-after"
	drop      fault = "drop"   // of a message
	repeat    fault = "repeat" // of a message: it comes twice, once late
)

// An incident is what happens by itself, to whoever it hits, or what a user does.
type incident struct {
	kind string
	at   time.Duration
	for_ time.Duration // how long it lasts, for those that do
	pick uint64        // which worker, checkpoint, parallelism
}

// kinds of incidents, each with how often it comes beside the others.
var kinds = []struct {
	name   string
	weight int
}{
	{"kill-worker", 6},
	{"kill-server", 5},
	{"sleep-worker", 4},
	{"sleep-server", 4},
	{"checkpoint", 6},
	{"savepoint", 7},
	{"cancel-checkpoint", 4},
	{"delete-savepoint", 5},
	{"stop", 3},
	{"cancel", 2},
	{"rescale", 2},
	{"rollback", 2},
	{"fork", 2},
	{"metastore-away", 2},
	{"storage-away", 2},
	{"call-away", 6},
	{"metastore-back", 3},
}

// calls are what a call-away lets fail.
var calls = []string{"put", "put_if_absent", "begin", "decide", "abort", "close", "trigger", "notify", "commit", "progress", "list", "delete"}

// A tape says what goes wrong in a run. One that records draws it from the seed; one
// that plays back has nothing but its entries, which is how a script repeats a failing
// seed and how the seed is made small.
type tape struct {
	seed    uint64
	rng     *rand.Rand // nil: it plays back
	rate    float64    // chance of each fault
	slowly  int        // how much slower than by themselves the sources read
	often   int        // how much more often than by themselves checkpoints are taken
	counts  map[string]int
	faults  map[string]fault // by point and count: "put#3"
	planned []incident
}

// newTape records the faults of a seed.
func newTape(seed uint64) *tape {
	rng := rand.New(rand.NewPCG(seed, 2))
	t := &tape{seed: seed, rng: rng, counts: map[string]int{}, faults: map[string]fault{}}
	t.rate = []float64{0, 0.01, 0.05}[rng.IntN(3)]
	t.slowly, t.often = 1<<rng.IntN(3), 1<<rng.IntN(4)
	lives := time.Duration(t.slowly) * 4 * time.Second // about as long as its jobs do, left alone
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	for range rng.IntN(9) {
		n := rng.IntN(total)
		for _, k := range kinds {
			if n -= k.weight; n < 0 {
				t.planned = append(t.planned, incident{
					kind: k.name, at: time.Duration(rng.Int64N(int64(lives))).Round(time.Millisecond),
					for_: time.Duration(rng.Int64N(int64(8 * time.Second))).Round(time.Millisecond), pick: rng.Uint64N(1000),
				})
				break
			}
		}
	}
	slices.SortStableFunc(t.planned, func(a, b incident) int { return cmp.Compare(a.at, b.at) })
	return t
}

// incidents are what will happen by itself.
func (t *tape) incidents(*world) []incident { return t.planned }

// fault says what happens to the next call at a point.
func (t *tape) fault(w *world, point string) fault {
	return t.draw(w, point, before, after, before, after, slow, dieBefore, dieAfter)
}

// message says what happens to the next message at a point.
func (t *tape) message(w *world, point string) fault { return t.draw(w, point, drop, repeat) }

func (t *tape) draw(w *world, point string, choices ...fault) fault {
	if w.calm() {
		return none
	}
	t.counts[point]++
	id := fmt.Sprintf("%s#%d", point, t.counts[point])
	if t.rng == nil {
		return t.faults[id]
	}
	if t.rng.Float64() >= t.rate {
		return none
	}
	f := choices[t.rng.IntN(len(choices))]
	if (f == dieBefore || f == dieAfter) && t.rng.IntN(3) > 0 {
		f = before
	}
	t.faults[id] = f
	return f
}

// script writes a tape down, so that a run can be repeated, and looked at, after the
// code that draws it has changed.
func (t *tape) script() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d\nsources %d times slower\ncheckpoints %d times more often\n", t.seed, t.slowly, t.often)
	for _, i := range t.planned {
		fmt.Fprintf(&b, "incident %s at=%v for=%v pick=%d\n", i.kind, i.at, i.for_, i.pick)
	}
	for _, id := range t.faultIDs() {
		fmt.Fprintf(&b, "fault %s %s\n", id, t.faults[id])
	}
	return b.String()
}

func (t *tape) faultIDs() []string {
	ids := make([]string, 0, len(t.faults))
	for id := range t.faults {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// parseScript reads what script wrote; lines that begin with # say why.
func parseScript(text string) (*tape, error) {
	t := &tape{slowly: 1, often: 1, counts: map[string]int{}, faults: map[string]fault{}}
	for n, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		var err error
		switch {
		case len(f) == 0 || strings.HasPrefix(line, "#"):
		case f[0] == "seed" && len(f) == 2:
			t.seed, err = strconv.ParseUint(f[1], 10, 64)
		case f[0] == "sources" && len(f) == 4:
			t.slowly, err = strconv.Atoi(f[1])
		case f[0] == "checkpoints" && len(f) == 5:
			t.often, err = strconv.Atoi(f[1])
		case f[0] == "fault" && len(f) == 3:
			t.faults[f[1]] = fault(f[2])
		case f[0] == "incident" && len(f) == 5:
			var i incident
			i, err = parseIncident(f[1:])
			t.planned = append(t.planned, i)
		default:
			err = fmt.Errorf("%q is none of seed N, sources N times slower, checkpoints N times more often, fault POINT#N KIND, incident KIND at= for= pick=", line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return t, nil
}

func parseIncident(f []string) (i incident, err error) {
	i.kind = f[0]
	var at, long, pick string
	for _, s := range f[1:] {
		name, value, _ := strings.Cut(s, "=")
		switch name {
		case "at":
			at = value
		case "for":
			long = value
		case "pick":
			pick = value
		}
	}
	if i.at, err = time.ParseDuration(at); err != nil {
		return i, err
	}
	if i.for_, err = time.ParseDuration(long); err != nil {
		return i, err
	}
	i.pick, err = strconv.ParseUint(pick, 10, 64)
	return i, err
}

// smaller drops from a failing tape whatever it fails without.
func smaller(t *tape, fails func(*tape) bool) *tape {
	small := t.replay()
	if !fails(small.replay()) {
		return t // what it drew while it ran decided; the seed alone repeats it
	}
	for part := max(len(small.planned), len(small.faults)); part >= 1; part /= 2 {
		for at := 0; at < len(small.planned); {
			try := small.replay()
			try.planned = slices.Delete(try.planned, at, min(at+part, len(try.planned)))
			if fails(try.replay()) {
				small = try
			} else {
				at += part
			}
		}
		for ids, at := small.faultIDs(), 0; at < len(ids); at += part {
			try := small.replay()
			for _, id := range ids[at:min(at+part, len(ids))] {
				delete(try.faults, id)
			}
			if fails(try.replay()) {
				small = try
			}
		}
	}
	return small
}

// replay is the same tape, played back from its beginning.
func (t *tape) replay() *tape {
	c := &tape{seed: t.seed, slowly: t.slowly, often: t.often, counts: map[string]int{}, faults: map[string]fault{}, planned: slices.Clone(t.planned)}
	for id, f := range t.faults {
		c.faults[id] = f
	}
	return c
}
