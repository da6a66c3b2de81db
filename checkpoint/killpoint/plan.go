package killpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A plan says where a process dies. The zero plan: nowhere.
type plan struct {
	point   string
	passage int64  // counted from 1
	stop    bool   // stopped rather than killed
	armed   string // the file that has to exist first; empty: none
}

// parse reads WEIR_KILL.
func parse(text string) (plan, error) {
	if text == "" {
		return plan{}, nil
	}
	where, options, _ := strings.Cut(text, ",")
	name, passage, counted := strings.Cut(where, ":")
	p := plan{point: name, passage: 1}
	if !slices.ContainsFunc(Points(), func(q Point) bool { return q.Name == name }) {
		return plan{}, fmt.Errorf("WEIR_KILL=%s: there is no point %q", text, name)
	}
	if counted {
		n, err := strconv.ParseInt(passage, 10, 64)
		if err != nil || n < 1 {
			return plan{}, fmt.Errorf("WEIR_KILL=%s: passages are counted from 1, not %q", text, passage)
		}
		p.passage = n
	}
	for options != "" {
		var option string
		option, options, _ = strings.Cut(options, ",")
		file, armed := strings.CutPrefix(option, "armed=")
		switch {
		case armed && file != "":
			p.armed = file
		case option == "stop":
			p.stop = true
		default:
			return plan{}, fmt.Errorf("WEIR_KILL=%s: there is no option %q", text, option)
		}
	}
	return p, nil
}

func (p plan) isArmed() bool {
	if p.armed == "" {
		return true
	}
	_, err := os.Stat(p.armed)
	return err == nil
}
