package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir"
)

// A Mode says what a checkpoint promises.
type Mode string

// The modes.
const (
	ExactlyOnce Mode = "exactly_once"
	AtLeastOnce Mode = "at_least_once"
)

// maxConcurrent bounds how many checkpoints a job may have under way.
const maxConcurrent = 16

// A Retention says which checkpoints outlive their job's end.
type Retention string

// The retentions.
const (
	RetainOnCancellation Retention = "retain_on_cancellation"
	DeleteOnCancellation Retention = "delete_on_cancellation"
	RetainNone           Retention = "none" // nothing outlives a cancel or a failure
)

// Options are a job's checkpoint options. A zero field means its default, except
// Interval: 0 begins no checkpoint by itself (the last one of a bounded job is begun
// all the same).
type Options struct {
	Interval          time.Duration // between the starts of periodic checkpoints
	Mode              Mode          // default exactly_once
	Timeout           time.Duration // from trigger to last ack; default 10 m
	MinPause          time.Duration // from the end of the last completed checkpoint to the next periodic one
	MaxConcurrent     int           // checkpoints under way at a time, savepoints aside; default 1
	Retention         Retention     // default retain_on_cancellation
	NumRetained       int           // newest completed checkpoints kept; default 3
	TolerableFailures int           // consecutive failed checkpoints that an attempt survives
}

// DefaultOptions are the options of a job that names none.
func DefaultOptions() Options { return Options{Interval: 10 * time.Second}.withDefaults() }

func (o Options) withDefaults() Options {
	if o.Mode == "" {
		o.Mode = ExactlyOnce
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Minute
	}
	if o.MaxConcurrent == 0 {
		o.MaxConcurrent = 1
	}
	if o.Retention == "" {
		o.Retention = RetainOnCancellation
	}
	if o.NumRetained == 0 {
		o.NumRetained = 3
	}
	return o
}

// A Problem is one thing wrong with options.
type Problem struct {
	Field   string // as in JSON
	Message string
}

// An OptionsError lists all problems of options, in the order of their fields; it is
// weir.ErrInvalid.
type OptionsError struct{ Problems []Problem }

// Error gives "invalid: checkpoint.interval …; checkpoint.timeout …".
func (e *OptionsError) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "checkpoint.%s %s", p.Field, p.Message)
	}
	return fmt.Sprintf("%v: %s", weir.ErrInvalid, b.String())
}

// Unwrap makes it weir.ErrInvalid.
func (e *OptionsError) Unwrap() error { return weir.ErrInvalid }

// An option is one field of Options in its JSON form.
type option struct {
	name string
	get  func(o Options) any
	set  func(o *Options, raw json.RawMessage) string // what is wrong; empty: nothing
}

func optionList() []option {
	duration := func(name string, field func(o *Options) *time.Duration) option {
		return option{
			name,
			func(o Options) any { return field(&o).String() },
			func(o *Options, raw json.RawMessage) string { return setDuration(field(o), raw) },
		}
	}
	integer := func(name string, field func(o *Options) *int) option {
		return option{
			name,
			func(o Options) any { return *field(&o) },
			func(o *Options, raw json.RawMessage) string { return setInt(field(o), raw) },
		}
	}
	return []option{
		duration("interval", func(o *Options) *time.Duration { return &o.Interval }),
		{
			"mode", func(o Options) any { return o.Mode },
			func(o *Options, raw json.RawMessage) string { return setWord((*string)(&o.Mode), raw) },
		},
		duration("timeout", func(o *Options) *time.Duration { return &o.Timeout }),
		duration("min_pause", func(o *Options) *time.Duration { return &o.MinPause }),
		integer("max_concurrent", func(o *Options) *int { return &o.MaxConcurrent }),
		{
			"retention", func(o Options) any { return o.Retention },
			func(o *Options, raw json.RawMessage) string { return setWord((*string)(&o.Retention), raw) },
		},
		integer("num_retained", func(o *Options) *int { return &o.NumRetained }),
		integer("tolerable_failures", func(o *Options) *int { return &o.TolerableFailures }),
	}
}

func setDuration(to *time.Duration, raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return fmt.Sprintf(`is %s; give a string such as "10s"`, raw)
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Sprintf(`is %q; give a duration such as "500ms", "10s" or "10m"`, s)
	}
	*to = d
	return ""
}

func setInt(to *int, raw json.RawMessage) string {
	if json.Unmarshal(raw, to) != nil || string(raw) == "null" {
		return fmt.Sprintf("is %s; give a whole number", raw)
	}
	return ""
}

func setWord(to *string, raw json.RawMessage) string {
	if json.Unmarshal(raw, to) != nil || string(raw) == "null" {
		return fmt.Sprintf("is %s; give a string", raw)
	}
	return ""
}

// MarshalJSON writes every field, defaults filled in and durations as strings.
func (o Options) MarshalJSON() ([]byte, error) {
	o = o.withDefaults()
	var b bytes.Buffer
	for i, opt := range optionList() {
		value, err := json.Marshal(opt.get(o))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%c%q:%s", "{,"[min(i, 1)], opt.name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON is ParseOptions.
func (o *Options) UnmarshalJSON(raw []byte) error {
	parsed, err := ParseOptions(raw)
	if err == nil {
		*o = parsed
	}
	return err
}

// ParseOptions reads options from JSON; fields that are absent have their defaults,
// as DefaultOptions. The error is an *OptionsError that lists every problem.
func ParseOptions(raw json.RawMessage) (Options, error) {
	return DefaultOptions().Merge(raw)
}

// Merge returns o with the fields that raw names replaced. The error is an
// *OptionsError that lists every problem.
func (o Options) Merge(raw json.RawMessage) (Options, error) {
	o = o.withDefaults()
	if len(raw) == 0 || string(raw) == "null" {
		return o, o.Validate()
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return o, fmt.Errorf("%w: checkpoint options are not a JSON object: %w", weir.ErrInvalid, err)
	}
	var problems []Problem
	names := make([]string, 0, len(fields))
	for _, opt := range optionList() {
		names = append(names, opt.name)
		value, ok := fields[opt.name]
		if !ok {
			continue
		}
		delete(fields, opt.name)
		if wrong := opt.set(&o, value); wrong != "" {
			problems = append(problems, Problem{opt.name, wrong})
		}
	}
	unknown := make([]string, 0, len(fields))
	for name := range fields {
		unknown = append(unknown, name)
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		problems = append(problems, Problem{name, "is unknown; the fields are " + strings.Join(names, ", ")})
	}
	return o, o.problems(problems)
}

// Set returns o with one field replaced by the text that SET 'checkpoint.FIELD' gives
// it: '10s', 'exactly_once', '3'.
func (o Options) Set(field, value string) (Options, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return o, fmt.Errorf("checkpoint.%s: %w", field, err)
	}
	if _, err := strconv.Atoi(value); err == nil && slices.Contains([]string{"max_concurrent", "num_retained", "tolerable_failures"}, field) {
		raw = []byte(value)
	}
	object, err := json.Marshal(map[string]json.RawMessage{field: raw})
	if err != nil {
		return o, fmt.Errorf("checkpoint.%s: %w", field, err)
	}
	return o.Merge(object)
}

// Validate reports all problems at once, as an *OptionsError.
func (o Options) Validate() error { return o.withDefaults().problems(nil) }

// problems adds to those found what is wrong with the fields that were readable.
func (o Options) problems(found []Problem) error {
	add := func(wrong bool, field, format string, args ...any) {
		known := slices.ContainsFunc(found, func(p Problem) bool { return p.Field == field })
		if wrong && !known {
			found = append(found, Problem{field, fmt.Sprintf(format, args...)})
		}
	}
	add(o.Interval < 0, "interval", "is %v; give 0 (none) or more", o.Interval)
	add(o.Interval > 0 && o.Interval < time.Millisecond, "interval", "is %v; give 1ms or more", o.Interval)
	add(o.Mode != AtLeastOnce && o.Mode != ExactlyOnce, "mode", "is %q; give exactly_once or at_least_once", o.Mode)
	add(o.Timeout < time.Millisecond, "timeout", "is %v; give 1ms or more", o.Timeout)
	add(o.MinPause < 0, "min_pause", "is %v; give 0s or more", o.MinPause)
	add(o.MaxConcurrent < 1 || o.MaxConcurrent > maxConcurrent, "max_concurrent", "is %d; give 1 to %d", o.MaxConcurrent, maxConcurrent)
	add(!slices.Contains([]Retention{RetainOnCancellation, DeleteOnCancellation, RetainNone}, o.Retention), "retention",
		"is %q; give retain_on_cancellation, delete_on_cancellation or none", o.Retention)
	add(o.NumRetained < 1, "num_retained", "is %d; give 1 or more", o.NumRetained)
	add(o.TolerableFailures < 0, "tolerable_failures", "is %d; give 0 or more", o.TolerableFailures)
	if len(found) == 0 {
		return nil
	}
	order := optionList()
	rank := func(p Problem) int {
		i := slices.IndexFunc(order, func(opt option) bool { return opt.name == p.Field })
		if i < 0 {
			return len(order)
		}
		return i
	}
	slices.SortStableFunc(found, func(a, b Problem) int { return rank(a) - rank(b) })
	return &OptionsError{Problems: found}
}
