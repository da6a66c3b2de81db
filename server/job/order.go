package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir"
	"weir/exec/deploy"
	"weir/planner/plan"
)

// orderBy reads "n desc, behavior" or "-n,behavior". A column whose name would be taken
// for something else stands in double quotes, as in SQL.
func (t table) orderBy(s string) ([]deploy.Order, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	var list []deploy.Order
	for rest, more := s, true; more; {
		o, after, err := readOrder(rest)
		if err != nil {
			return nil, fmt.Errorf("%w: order_by %q: %w", weir.ErrInvalid, s, err)
		}
		if !slices.ContainsFunc(t.shown(), func(c plan.Column) bool { return c.Name == o.Column }) {
			names := make([]string, len(t.graph.Result))
			for i, c := range t.graph.Result {
				names[i] = c.Name
			}
			return nil, fmt.Errorf("%w: order_by: the result has no column %q; it has %s", weir.ErrInvalid, o.Column, strings.Join(names, ", "))
		}
		list = append(list, o)
		rest, more = strings.CutPrefix(after, ",")
	}
	return list, nil
}

// readOrder reads one column of an order; after is what follows: nothing, or a comma
// and more.
func readOrder(s string) (o deploy.Order, after string, err error) {
	s, minus := strings.CutPrefix(strings.TrimSpace(s), "-")
	if o.Column, after, err = readColumn(s); err != nil {
		return o, "", err
	}
	end := strings.IndexByte(after, ',')
	if end < 0 {
		end = len(after)
	}
	words := strings.Fields(after[:end])
	switch {
	case o.Column == "":
		return o, "", errors.New(`write columns with commas between, such as "n desc, behavior"`)
	case len(words) == 0:
	case minus:
		return o, "", errors.New("a column with - before it is followed by nothing")
	case len(words) > 1:
		return o, "", errors.New(`write columns with commas between, such as "n desc, behavior", and names of several words in double quotes`)
	case !strings.EqualFold(words[0], "desc") && !strings.EqualFold(words[0], "asc"):
		return o, "", errors.New("a column is followed by asc, desc or nothing")
	}
	o.Desc = minus || len(words) == 1 && strings.EqualFold(words[0], "desc")
	return o, after[end:], nil
}

// readColumn reads a name: up to a blank or a comma, or between double quotes, of which
// two stand for one.
func readColumn(s string) (name, after string, err error) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s, ", \t\r\n")
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:], nil
	}
	for after = s[1:]; ; name += `"` {
		part, rest, ok := strings.Cut(after, `"`)
		if !ok {
			return "", "", errors.New("a double quote is not closed")
		}
		name += part
		if after, ok = strings.CutPrefix(rest, `"`); !ok {
			return name, rest, nil
		}
	}
}
