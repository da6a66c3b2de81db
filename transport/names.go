package transport

import (
	"fmt"
	"strings"
)

// Names are what the fields of Security, and URL of Options, are called where they were
// set, such as flags, so that errors say what to look at. A field without one has none.
type Names map[string]string

// in gives " (A, B)", the names of fields, or nothing where they have none.
func (n Names) in(fields ...string) string {
	var list []string
	for _, f := range fields {
		if name := n[f]; name != "" {
			list = append(list, name)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return " (" + strings.Join(list, ", ") + ")"
}

// about puts the names of fields before an error of theirs.
func (n Names) about(err error, fields ...string) error {
	if in := n.in(fields...); in != "" {
		return fmt.Errorf("%s: %w", in[2:len(in)-1], err)
	}
	return err
}
