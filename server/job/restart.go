package job

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"weir"
	"weir/checkpoint"
)

// The restart strategies.
const (
	RestartExponential = "exponential_delay"
	RestartFixed       = "fixed_delay"
	RestartFailureRate = "failure_rate"
	RestartNone        = "none"
)

// RestartOptions say what follows the failure of an attempt. Each strategy reads its
// own fields.
type RestartOptions struct {
	Strategy string
	// exponential_delay: InitialBackoff times Multiplier per failure, MaxBackoff at
	// most; an attempt that ran for ResetAfter begins anew. One that had run and lost a worker
	// is followed at once.
	InitialBackoff time.Duration
	MaxBackoff     time.Duration
	Multiplier     float64
	ResetAfter     time.Duration
	// exponential_delay and fixed_delay: the number of restarts in a row; 0: no limit.
	Attempts int
	// fixed_delay and failure_rate.
	Delay time.Duration
	// failure_rate: more than Failures within Interval end the job.
	Failures int
	Interval time.Duration
}

// restartFields is the JSON form: strategy and its fields; nil means not given.
type restartFields struct {
	Strategy       *string  `json:"strategy,omitempty"`
	InitialBackoff *string  `json:"initial_backoff,omitempty"`
	MaxBackoff     *string  `json:"max_backoff,omitempty"`
	Multiplier     *float64 `json:"multiplier,omitempty"`
	ResetAfter     *string  `json:"reset_after,omitempty"`
	Attempts       *int     `json:"attempts,omitempty"`
	Delay          *string  `json:"delay,omitempty"`
	Failures       *int     `json:"failures,omitempty"`
	Interval       *string  `json:"interval,omitempty"`
}

// DefaultRestart is what a job gets that asks for nothing: exponential delay without
// a limit.
func DefaultRestart() RestartOptions {
	return RestartOptions{
		Strategy: RestartExponential, InitialBackoff: 100 * time.Millisecond, MaxBackoff: 30 * time.Second,
		Multiplier: 2, ResetAfter: 10 * time.Minute,
	}
}

// ParseRestart reads the JSON form of RestartOptions; nil gives the defaults. The
// error is weir.ErrInvalid and a *FieldError that names every fault.
func ParseRestart(raw json.RawMessage) (RestartOptions, error) {
	if len(bytes.TrimSpace(raw)) == 0 || string(raw) == "null" {
		return DefaultRestart(), nil
	}
	var f restartFields
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return RestartOptions{}, undecoded(err)
	}
	p := restartParser{}
	o := p.parse(f)
	if len(p.problems) > 0 {
		texts := make([]string, len(p.problems))
		for i, problem := range p.problems {
			texts[i] = strings.TrimPrefix(problem.Field, "restart.") + " " + problem.Message
		}
		return RestartOptions{}, &FieldError{Problems: p.problems, Err: fmt.Errorf("%w: restart: %s", weir.ErrInvalid, strings.Join(texts, "; "))}
	}
	return o, nil
}

// undecoded says why the JSON form does not decode.
func undecoded(err error) error {
	name, _ := strings.CutPrefix(err.Error(), "json: unknown field ")
	if unquoted, bad := strconv.Unquote(name); bad == nil {
		return &FieldError{
			Problems: []checkpoint.Problem{{Field: "restart." + unquoted, Message: "is unknown"}},
			Err:      fmt.Errorf("%w: restart: unknown field %q", weir.ErrInvalid, unquoted),
		}
	}
	p := checkpoint.Problem{Field: "restart", Message: "is not JSON"}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		want := map[reflect.Kind]string{reflect.String: "a string", reflect.Int: "a whole number", reflect.Float64: "a number"}[wrong.Type.Kind()]
		p.Message = "is a JSON " + wrong.Value + ": give " + cmp.Or(want, "an object")
		if wrong.Field != "" {
			p.Field += "." + wrong.Field
		}
	}
	return &FieldError{Problems: []checkpoint.Problem{p}, Err: fmt.Errorf("%w: %s %s", weir.ErrInvalid, p.Field, p.Message)}
}

type restartParser struct{ problems []checkpoint.Problem }

func (p *restartParser) parse(f restartFields) RestartOptions {
	o := DefaultRestart()
	if f.Strategy != nil {
		o.Strategy = *f.Strategy
	}
	switch o.Strategy {
	case RestartExponential:
	case RestartFixed:
		o = RestartOptions{Strategy: RestartFixed, Delay: time.Second}
	case RestartFailureRate:
		o = RestartOptions{Strategy: RestartFailureRate, Delay: time.Second, Failures: 3, Interval: time.Minute}
	case RestartNone:
		o = RestartOptions{Strategy: RestartNone}
	default:
		p.add("strategy", "%q is none of exponential_delay, fixed_delay, failure_rate, none", o.Strategy)
		return o
	}
	exp, fixed, rate := o.Strategy == RestartExponential, o.Strategy == RestartFixed, o.Strategy == RestartFailureRate
	p.duration("initial_backoff", f.InitialBackoff, exp, o.Strategy, &o.InitialBackoff)
	p.duration("max_backoff", f.MaxBackoff, exp, o.Strategy, &o.MaxBackoff)
	p.duration("reset_after", f.ResetAfter, exp, o.Strategy, &o.ResetAfter)
	p.duration("delay", f.Delay, fixed || rate, o.Strategy, &o.Delay)
	p.duration("interval", f.Interval, rate, o.Strategy, &o.Interval)
	p.count("attempts", f.Attempts, exp || fixed, o.Strategy, &o.Attempts)
	p.count("failures", f.Failures, rate, o.Strategy, &o.Failures)
	if f.Multiplier != nil {
		o.Multiplier = *f.Multiplier
		p.belongs("multiplier", exp, o.Strategy)
	}
	if exp && (o.Multiplier < 1 || o.Multiplier > 100) {
		p.add("multiplier", "must lie between 1 and 100")
	}
	if exp && o.MaxBackoff < o.InitialBackoff {
		p.add("max_backoff", "%v is below initial_backoff %v", o.MaxBackoff, o.InitialBackoff)
	}
	return o
}

func (p *restartParser) add(name, format string, args ...any) {
	p.problems = append(p.problems, checkpoint.Problem{Field: "restart." + name, Message: fmt.Sprintf(format, args...)})
}

func (p *restartParser) belongs(name string, allowed bool, strategy string) {
	if !allowed {
		p.add(name, "does not belong to strategy %s", strategy)
	}
}

func (p *restartParser) duration(name string, s *string, allowed bool, strategy string, into *time.Duration) {
	if s == nil {
		return
	}
	p.belongs(name, allowed, strategy)
	d, err := time.ParseDuration(*s)
	if err != nil || d < 0 {
		p.add(name, "%q is no duration like \"10s\"", *s)
		return
	}
	*into = d
}

func (p *restartParser) count(name string, n *int, allowed bool, strategy string, into *int) {
	if n == nil {
		return
	}
	p.belongs(name, allowed, strategy)
	if *n < 0 {
		p.add(name, "must not be negative")
		return
	}
	*into = *n
}

// MarshalJSON gives the form that ParseRestart reads, with every field of the strategy.
func (o RestartOptions) MarshalJSON() ([]byte, error) {
	str := func(d time.Duration) *string { s := d.String(); return &s }
	f := restartFields{Strategy: &o.Strategy}
	switch o.Strategy {
	case RestartExponential:
		f.InitialBackoff, f.MaxBackoff, f.ResetAfter = str(o.InitialBackoff), str(o.MaxBackoff), str(o.ResetAfter)
		f.Multiplier, f.Attempts = &o.Multiplier, &o.Attempts
	case RestartFixed:
		f.Delay, f.Attempts = str(o.Delay), &o.Attempts
	case RestartFailureRate:
		f.Delay, f.Failures, f.Interval = str(o.Delay), &o.Failures, str(o.Interval)
	}
	return json.Marshal(f)
}

// lostAfter is how long an attempt ran that a worker's death ended, for the next to begin
// without a wait: a job that kills its workers at once waits.
const lostAfter = time.Second

// restarts counts a job's failures and says after each how long to wait.
type restarts struct {
	opts    RestartOptions
	count   int // failures in a row
	backoff time.Duration
	times   []time.Time // of the failures within the interval
}

// failed records a failure at now of an attempt that had run since runningAt (zero:
// it never did); lost: for a worker's death. It gives the wait before the next attempt, or
// why there is none.
func (r *restarts) failed(now, runningAt time.Time, lost bool) (wait time.Duration, refusal string) {
	o := r.opts
	switch o.Strategy {
	case RestartNone:
		return 0, "its restart strategy is none"
	case RestartFixed:
		if r.count++; o.Attempts > 0 && r.count > o.Attempts {
			return 0, fmt.Sprintf("it was restarted %d times, as its restart strategy allows", o.Attempts)
		}
		return o.Delay, ""
	case RestartFailureRate:
		kept := r.times[:0]
		for _, t := range r.times {
			if now.Sub(t) < o.Interval {
				kept = append(kept, t)
			}
		}
		kept = append(kept, now)
		if r.times = kept; len(kept) > o.Failures {
			return 0, fmt.Sprintf("it failed %d times within %v, more than its restart strategy allows", len(r.times), o.Interval)
		}
		return o.Delay, ""
	}
	if !runningAt.IsZero() && now.Sub(runningAt) >= o.ResetAfter {
		r.count, r.backoff = 0, 0
	}
	if r.count++; o.Attempts > 0 && r.count > o.Attempts {
		return 0, fmt.Sprintf("it was restarted %d times, as its restart strategy allows", o.Attempts)
	}
	if lost && !runningAt.IsZero() && now.Sub(runningAt) >= lostAfter {
		return 0, "" // the job is not to blame, and had got somewhere
	}
	if r.backoff = time.Duration(float64(r.backoff) * o.Multiplier); r.backoff < o.InitialBackoff {
		r.backoff = o.InitialBackoff
	}
	r.backoff = min(r.backoff, o.MaxBackoff)
	return r.backoff, ""
}
