package planner

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/planner/civil"
	"weir/planner/plan"
	"weir/planner/sql"
)

// Settings are what a script SETs: names as in a job's JSON ("checkpoint.interval",
// "parallelism") and values in the form that JSON takes ("1s", "3", "exactly_once").
type Settings map[string]string

// Section gives the settings below "name." as a JSON object with the fields that a
// job's JSON has, or nil where there are none: {"interval":"1s","num_retained":3}.
func (s Settings) Section(name string) json.RawMessage {
	fields := map[string]any{}
	for key, value := range s {
		field, ok := strings.CutPrefix(key, name+".")
		if !ok {
			continue
		}
		fields[field] = value
		if _, err := strconv.ParseFloat(value, 64); err == nil {
			fields[field] = json.Number(value)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	object, err := json.Marshal(fields) // sorted by field
	if err != nil {
		panic(fmt.Sprintf("planner: strings and numbers as JSON: %v", err))
	}
	return object
}

// Int gives a setting that is a number, such as "parallelism".
func (s Settings) Int(name string) (int, bool) {
	n, err := strconv.Atoi(s[name])
	return n, err == nil
}

// A setting is an option that SET takes.
type setting struct {
	name  string
	alias string // Flink's name
	read  func(value string) (string, error)
}

func settings() []setting {
	const flink = "execution.checkpointing."
	return []setting{
		{"checkpoint.interval", flink + "interval", readInterval},
		{"checkpoint.mode", flink + "mode", readMode},
		{"checkpoint.timeout", flink + "timeout", readTimeout},
		{"checkpoint.min_pause", flink + "min-pause", readDuration},
		{"checkpoint.max_concurrent", flink + "max-concurrent-checkpoints", readConcurrent},
		{"checkpoint.retention", flink + "externalized-checkpoint-retention", readRetention},
		{"checkpoint.num_retained", flink + "num-retained", readPositive},
		{"checkpoint.tolerable_failures", flink + "tolerable-failed-checkpoints", readCount},
		{"parallelism", "parallelism.default", readParallelism},
		{"max_parallelism", "pipeline.max-parallelism", readParallelism},
		{"restart.strategy", "restart-strategy.type", readStrategy},
		{"restart.initial_backoff", "restart-strategy.exponential-delay.initial-backoff", readDuration},
		{"restart.max_backoff", "restart-strategy.exponential-delay.max-backoff", readDuration},
		{"restart.multiplier", "restart-strategy.exponential-delay.backoff-multiplier", readMultiplier},
		{"restart.reset_after", "restart-strategy.exponential-delay.reset-backoff-threshold", readDuration},
		{"restart.attempts", "restart-strategy.fixed-delay.attempts", readCount},
		{"restart.delay", "restart-strategy.fixed-delay.delay", readDuration},
		{"restart.failures", "restart-strategy.failure-rate.max-failures-per-interval", readCount},
		{"restart.interval", "restart-strategy.failure-rate.failure-rate-interval", readTimeout},
		{"timezone", "table.local-time-zone", readZone},
		{"on_row_error", "", readOnRowError},
		{"latency_target", "execution.buffer-timeout.interval", readLatency},
	}
}

// bindSettings checks every SET of a script.
func bindSettings(sets []*sql.Set, found *problems) Settings {
	bound := Settings{}
	for _, s := range sets {
		known := findSetting(s.Key.Value)
		if known == nil {
			refuseSetting(s, found)
			continue
		}
		value, err := known.read(s.Value.Value)
		if err != nil {
			found.add(s.Value, CodeOption, "", "SET '%s': %v", s.Key.Value, err)
			continue
		}
		if old, ok := bound[known.name]; ok && old != value {
			found.add(s.Key, CodeOption, "keep one of them", "'%s' is set twice, to '%s' and '%s'", known.name, old, value)
			continue
		}
		bound[known.name] = value
	}
	return bound
}

// findSetting looks an option up by its name or by a name that Flink has or had for it.
func findSetting(name string) *setting {
	older := map[string]string{
		"execution.buffer-timeout":                                         "latency_target",
		"table.exec.resource.default-parallelism":                          "parallelism",
		"restart-strategy":                                                 "restart.strategy",
		"restart-strategy.failure-rate.delay":                              "restart.delay",
		"state.checkpoints.num-retained":                                   "checkpoint.num_retained",
		"execution.checkpointing.externalized-checkpoint-retention-policy": "checkpoint.retention",
	}
	if newer, ok := older[name]; ok {
		name = newer
	}
	list := settings()
	i := slices.IndexFunc(list, func(s setting) bool { return s.name == name || s.alias == name && name != "" })
	if i < 0 {
		return nil
	}
	return &list[i]
}

func refuseSetting(s *sql.Set, found *problems) {
	name := s.Key.Value
	var names, all []string
	for _, known := range settings() {
		names = append(names, known.name)
		if all = append(all, known.name); known.alias != "" {
			all = append(all, known.alias)
		}
	}
	if hint := insteadOfSetting(name); hint != "" && suggestion(name, all) == "" {
		found.add(s.Key, CodeOption, hint, "there is no option '%s'", name)
		return
	}
	found.add(s.Key, CodeOption, hints(suggestion(name, all), "the options are "+strings.Join(names, ", ")), "there is no option '%s'", name)
}

// insteadOfSetting tells what becomes of an option that Flink has.
func insteadOfSetting(name string) string {
	prefix, _, _ := strings.Cut(name, ".")
	switch {
	case name == "execution.buffer-timeout.enabled":
		return "leave it out: SET 'latency_target' = '0 s' has every batch go at once"
	case name == "execution.runtime-mode":
		return "leave it out: a job over bounded input ends by itself"
	case name == "table.exec.state.ttl":
		return "leave it out: state is kept; EXPLAIN tells how much, and warns where it grows without end"
	case name == "pipeline.name":
		return "the job's name is given with the job: weir run --name, or name in its JSON"
	case prefix == "sql-client":
		return "leave it out: weir run prints the result, and with --changes its changes"
	case prefix == "table" || prefix == "pipeline" || prefix == "state" || prefix == "execution" && !strings.HasPrefix(name, "execution.checkpointing.") || prefix == "taskmanager" || prefix == "jobmanager":
		return "leave it out: it is Flink's, and there is nothing like it here"
	}
	return ""
}

// readDuration reads "1 s", "500ms", "1 min" and what Go writes ("1m30s") into Go's
// form. A bare number has no unit and is refused, except 0.
func readDuration(v string) (string, error) {
	text := strings.ToLower(strings.TrimSpace(v))
	if text == "0" {
		return "0s", nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return checkDuration(v, d)
	}
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzµ ")
	unit := durationUnit(strings.TrimSpace(text[len(digits):]))
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || unit == 0 || n > math.MaxInt64/int64(unit) {
		return "", fmt.Errorf("'%s' is not a duration such as '10 s', '500 ms' or '1 min'", v)
	}
	return checkDuration(v, time.Duration(n)*unit)
}

// readInterval reads a duration of which 0 means never.
func readInterval(v string) (string, error) {
	text, err := readDuration(v)
	if text == "0s" {
		return text, err
	}
	return atLeastMilli(v, text, err)
}

func readTimeout(v string) (string, error) {
	text, err := readDuration(v)
	return atLeastMilli(v, text, err)
}

func atLeastMilli(v, text string, err error) (string, error) {
	if d, _ := time.ParseDuration(text); err == nil && d < time.Millisecond { // it was printed by a Duration
		return "", fmt.Errorf("'%s' is less than a millisecond", v)
	}
	return text, err
}

func durationUnit(word string) time.Duration {
	switch word {
	case "ms", "milli", "millis", "millisecond", "milliseconds":
		return time.Millisecond
	case "s", "sec", "secs", "second", "seconds":
		return time.Second
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute
	case "h", "hour", "hours":
		return time.Hour
	case "d", "day", "days":
		return 24 * time.Hour
	}
	return 0
}

func checkDuration(v string, d time.Duration) (string, error) {
	if d < 0 {
		return "", fmt.Errorf("'%s' is negative", v)
	}
	return d.String(), nil
}

func readMode(v string) (string, error) {
	switch strings.ToLower(strings.ReplaceAll(v, "-", "_")) {
	case "exactly_once":
		return "exactly_once", nil
	case "at_least_once":
		return "at_least_once", nil
	}
	return "", fmt.Errorf("'%s' is neither exactly_once nor at_least_once", v)
}

func readRetention(v string) (string, error) {
	switch s := strings.ToLower(strings.ReplaceAll(v, "-", "_")); s {
	case "retain_on_cancellation", "delete_on_cancellation", "none":
		return s, nil
	case "no_externalized_checkpoints":
		return "none", nil
	}
	return "", fmt.Errorf("'%s' is none of retain_on_cancellation, delete_on_cancellation, none", v)
}

func readConcurrent(v string) (string, error) {
	const limit = 16
	s, err := readPositive(v)
	if n, _ := strconv.Atoi(s); n > limit {
		return "", fmt.Errorf("%s is more than %d", v, limit)
	}
	return s, err
}

// readParallelism bounds numbers of subtasks and key groups.
func readParallelism(v string) (string, error) {
	const limit = 32768
	s, err := readPositive(v)
	if n, _ := strconv.Atoi(s); n > limit {
		return "", fmt.Errorf("%s is more than %d", v, limit)
	}
	return s, err
}

func readPositive(v string) (string, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		return "", fmt.Errorf("'%s' is not a whole number from 1", v)
	}
	return strconv.Itoa(n), nil
}

// readZone reads the name of a time zone as the tz database has it.
func readZone(v string) (string, error) {
	name := strings.TrimSpace(v)
	if name == "" || strings.EqualFold(name, "UTC") || strings.EqualFold(name, "GMT") {
		return "UTC", nil
	}
	if _, err := civil.NewZone(name); err != nil {
		return "", err
	}
	return name, nil
}

func readStrategy(v string) (string, error) {
	switch s := strings.ToLower(strings.ReplaceAll(v, "-", "_")); s {
	case "exponential_delay", "fixed_delay", "failure_rate", "none":
		return s, nil
	case "off", "disable":
		return "none", nil
	}
	return "", fmt.Errorf("'%s' is none of exponential_delay, fixed_delay, failure_rate, none", v)
}

func readMultiplier(v string) (string, error) {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return "", fmt.Errorf("'%s' is not a number", v)
	}
	return strconv.FormatFloat(f, 'f', -1, 64), nil
}

func readOnRowError(v string) (string, error) {
	switch s := strings.ToLower(v); s {
	case "fail", "skip", "keep":
		return s, nil
	}
	return "", fmt.Errorf("'%s' is none of fail, skip, keep", v)
}

// readLatency reads how long rows may wait for company.
func readLatency(v string) (string, error) {
	text, err := readDuration(v)
	if err != nil {
		return "", err
	}
	if _, err := plan.CheckLatency(text); err != nil {
		return "", fmt.Errorf("it %w", err)
	}
	return text, nil
}

// agreeLatency is agreeOnRowError for latency_target; a request's that is wrong is refused
// with the request.
func agreeLatency(settings Settings, sets []*sql.Set, said string, found *problems) {
	wish, err := plan.CheckLatency(said)
	if said == "" || err != nil {
		return
	}
	set, ok := settings["latency_target"]
	if settings["latency_target"] = wish.String(); !ok || set == wish.String() {
		return
	}
	for _, s := range sets {
		if known := findSetting(s.Key.Value); known != nil && known.name == "latency_target" {
			found.add(s.Value, CodeOption, "say it once", "latency_target is '%s' here and '%s' in the job's request", set, said)
		}
	}
}

// agreeOnRowError puts what the job's request says beside what the script SETs; where
// both say something they have to agree.
func agreeOnRowError(settings Settings, sets []*sql.Set, said string, found *problems) {
	set, ok := settings["on_row_error"]
	if _, err := readOnRowError(said); err != nil { // absent, or refused with the request
		return
	}
	if settings["on_row_error"] = said; !ok || set == said {
		return
	}
	for _, s := range sets {
		if s.Key.Value == "on_row_error" {
			found.add(s.Value, CodeOption, "say it once", "on_row_error is '%s' here and '%s' in the job's request", set, said)
		}
	}
}
