package sim

import "fmt"

// A Result is what became of a run.
type Result struct {
	Err    error    // the first thing that it broke; nil: nothing
	Trace  []string // what happened
	Script string   // repeats the run, by what went wrong in it
	Steps  int
	Tally  Tally // what happened how often
}

// Run simulates one seed from the first row to the end of every job.
func Run(seed uint64) Result { return play(newTape(seed)) }

// Replay runs a script, as Result.Script and Shrink give it.
func Replay(script string) Result {
	t, err := parseScript(script)
	if err != nil {
		return Result{Err: fmt.Errorf("script: %w", err), Script: script}
	}
	return play(t)
}

// Shrink drops from a failing seed whatever it fails without, and returns the script
// that is left.
func Shrink(seed uint64) string {
	t := newTape(seed)
	play(t)
	small := smaller(t, func(t *tape) bool { return play(t).Err != nil })
	return small.script()
}

func play(t *tape) Result {
	w := newWorld(t.seed, t)
	w.run()
	r := Result{Trace: w.trace, Script: t.script(), Steps: w.seq, Tally: w.tally}
	if w.broken != nil {
		r.Err = fmt.Errorf("seed %d: %w", t.seed, w.broken)
	}
	return r
}
