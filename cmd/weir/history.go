package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"weir/checkpoint"
)

// historyFlags adds the flags that say how long the history of checkpoints is kept.
func historyFlags(f *pflag.FlagSet, keep *checkpoint.Thinning) {
	keep.Detail = 7 * day
	f.Var((*age)(&keep.Rows), "history", "how long checkpoints stay in the history, such as 90d; 0: for ever")
	f.Var((*age)(&keep.Detail), "history-detail", "how long their detail per subtask does, such as 36h; 0: for ever")
}

const day = 24 * time.Hour

// leastAge is the shortest age that a history may have: whoever waits for the end of a
// checkpoint reads its row.
const leastAge = time.Minute

// An age is a duration as a flag: as Go writes them, or in days.
type age time.Duration

// Type names the value in the help.
func (a *age) Type() string { return "age" }

// String gives the age in days where it is whole days.
func (a *age) String() string {
	d := time.Duration(*a)
	switch {
	case d == 0:
		return "0"
	case d%day == 0:
		return strconv.Itoa(int(d/day)) + "d"
	}
	return d.String()
}

// Set reads an age.
func (a *age) Set(text string) error {
	d, err := parseAge(text)
	if err == nil && d > 0 && d < leastAge {
		err = fmt.Errorf("%q is too short: give 0 for ever, or 1m or longer", text)
	}
	if err == nil {
		*a = age(d)
	}
	return err
}

// parseAge reads days, or a duration.
func parseAge(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int64
		n, err = strconv.ParseInt(days, 10, 32)
		d = time.Duration(n) * day
		if n > 100*366 { // more than a duration holds is for ever, which is 0
			err = strconv.ErrRange
		}
	}
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is no age: give days such as 90d, a duration such as 36h, or 0 for ever", text)
	}
	return d, nil
}
