package eval

import (
	"encoding/json"
	"io"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"weir/planner/expr"
)

// A testFunction is a function of the table, computed simply: in runes, with package
// strings. ok is false where it fails.
type testFunction struct {
	name   string
	result expr.Kind
	args   []expr.Kind
	nulls  bool // it is given its NULLs
	f      func(a []value) (v value, ok bool)
}

func textValue(s string) (value, bool) { return value{s: s}, len(s) <= maxString }

func intValue(n int) (value, bool) { return value{n: big.NewInt(int64(n))}, true }

func intArg(v value) int { return int(v.n.Int64()) }

// testFunctions are the functions of strings; their last arguments may be left out where
// the table says so, which the golden values test.
func testFunctions() []testFunction {
	const s, i, b, y = expr.String, expr.Int, expr.Boolean, expr.Bytes
	return []testFunction{
		{"lower", s, []expr.Kind{s}, false, func(a []value) (value, bool) { return textValue(strings.Map(unicode.ToLower, a[0].s)) }},
		{"upper", s, []expr.Kind{s}, false, func(a []value) (value, bool) { return textValue(strings.Map(unicode.ToUpper, a[0].s)) }},
		{"char_length", i, []expr.Kind{s}, false, func(a []value) (value, bool) { return intValue(len([]rune(a[0].s))) }},
		{"octet_length", i, []expr.Kind{s}, false, func(a []value) (value, bool) { return intValue(len(a[0].s)) }},
		{"octet_length", i, []expr.Kind{y}, false, func(a []value) (value, bool) { return intValue(len(a[0].s)) }},
		{"trim", s, []expr.Kind{s, s}, false, func(a []value) (value, bool) { return textValue(strings.Trim(a[0].s, a[1].s)) }},
		{"ltrim", s, []expr.Kind{s, s}, false, func(a []value) (value, bool) { return textValue(strings.TrimLeft(a[0].s, a[1].s)) }},
		{"rtrim", s, []expr.Kind{s, s}, false, func(a []value) (value, bool) { return textValue(strings.TrimRight(a[0].s, a[1].s)) }},
		{"substring", s, []expr.Kind{s, i}, false, func(a []value) (value, bool) { return textValue(between(a[0].s, intArg(a[1]), 1<<40)) }},
		{"substring", s, []expr.Kind{s, i, i}, false, func(a []value) (value, bool) {
			return value{s: between(a[0].s, intArg(a[1]), intArg(a[1])+intArg(a[2]))}, intArg(a[2]) >= 0
		}},
		{"left", s, []expr.Kind{s, i}, false, func(a []value) (value, bool) {
			n := intArg(a[1])
			if n < 0 {
				n += len([]rune(a[0].s))
			}
			return textValue(between(a[0].s, 1, 1+n))
		}},
		{"right", s, []expr.Kind{s, i}, false, func(a []value) (value, bool) {
			n, size := intArg(a[1]), len([]rune(a[0].s))
			switch {
			case n == -1<<31:
				return a[0], true
			case n < 0:
				return textValue(between(a[0].s, 1-n, 1+size))
			}
			return textValue(between(a[0].s, size-n+1, 1+size))
		}},
		{"lpad", s, []expr.Kind{s, i, s}, false, func(a []value) (value, bool) { return referencePad(a, true) }},
		{"rpad", s, []expr.Kind{s, i, s}, false, func(a []value) (value, bool) { return referencePad(a, false) }},
		{"reverse", s, []expr.Kind{s}, false, func(a []value) (value, bool) {
			runes := []rune(a[0].s)
			slices.Reverse(runes)
			return textValue(string(runes))
		}},
		{"repeat", s, []expr.Kind{s, i}, false, func(a []value) (value, bool) {
			n := max(intArg(a[1]), 0)
			if n*len(a[0].s) > maxString {
				return value{}, false
			}
			return textValue(strings.Repeat(a[0].s, min(n, maxString)))
		}},
		{"replace", s, []expr.Kind{s, s, s}, false, func(a []value) (value, bool) {
			if a[1].s == "" {
				return a[0], true
			}
			return textValue(strings.ReplaceAll(a[0].s, a[1].s, a[2].s))
		}},
		{"position", i, []expr.Kind{s, s}, false, func(a []value) (value, bool) {
			before, _, ok := strings.Cut(a[1].s, a[0].s)
			return intValue(one(ok) * (len([]rune(before)) + 1))
		}},
		{"starts_with", b, []expr.Kind{s, s}, false, func(a []value) (value, bool) { return value{b: strings.HasPrefix(a[0].s, a[1].s)}, true }},
		{"split_index", s, []expr.Kind{s, s, i}, false, func(a []value) (value, bool) {
			delimiter := a[1].s
			if delimiter == "" {
				delimiter = " "
			}
			parts, n := strings.Split(a[0].s, delimiter), intArg(a[2])
			if a[0].s == "" || n < 0 || n >= len(parts) {
				return value{null: true}, true
			}
			return textValue(parts[n])
		}},
		{"split_part", s, []expr.Kind{s, s, i}, false, referenceSplitPart},
		{"concat_op", s, []expr.Kind{s, s}, false, func(a []value) (value, bool) { return textValue(a[0].s + a[1].s) }},
		{"concat_op", y, []expr.Kind{y, y}, false, func(a []value) (value, bool) { return textValue(a[0].s + a[1].s) }},
		{"concat", s, []expr.Kind{s, s, s}, true, func(a []value) (value, bool) { return textValue(strings.Join(present(a), "")) }},
		{"concat_ws", s, []expr.Kind{s, s, s}, true, func(a []value) (value, bool) {
			if a[0].null {
				return a[0], true
			}
			return textValue(strings.Join(present(a[1:]), a[0].s))
		}},
		{"like", b, []expr.Kind{s, s, s}, false, func(a []value) (value, bool) { return referenceLike(a, func(r rune) rune { return r }) }},
		{"ilike", b, []expr.Kind{s, s, s}, false, func(a []value) (value, bool) {
			return referenceLike(a, unicode.ToLower)
		}},
		{"regexp_extract", s, []expr.Kind{s, s, i}, false, func(a []value) (value, bool) {
			re, err := regexp.Compile(a[1].s)
			if err != nil {
				return value{}, false
			}
			n, groups := intArg(a[2]), re.FindStringSubmatchIndex(a[0].s)
			if n < 0 || 2*n >= len(groups) || groups[2*n] < 0 {
				return value{null: true}, true
			}
			return textValue(a[0].s[groups[2*n]:groups[2*n+1]])
		}},
		{"json_value", s, []expr.Kind{s, s}, false, referenceJSONValue},
	}
}

// between returns the characters at from up to before to, the first being 1.
func between(s string, from, to int) string {
	var b strings.Builder
	for i, r := range []rune(s) {
		if i+1 >= from && i+1 < to {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func referencePad(a []value, front bool) (value, bool) {
	runes, n, filler := []rune(a[0].s), max(intArg(a[1]), 0), []rune(a[2].s)
	switch {
	case n <= len(runes):
		return textValue(string(runes[:n]))
	case len(filler) == 0:
		return a[0], true
	case n > maxString:
		return value{}, false
	}
	var fill []rune
	for i := range n - len(runes) {
		fill = append(fill, filler[i%len(filler)])
	}
	if front {
		return textValue(string(fill) + string(runes))
	}
	return textValue(string(runes) + string(fill))
}

func referenceSplitPart(a []value) (value, bool) {
	parts, n := []string{a[0].s}, intArg(a[2])
	if a[1].s != "" {
		parts = strings.Split(a[0].s, a[1].s)
	}
	if n < 0 {
		n += len(parts) + 1
		if n == 0 {
			return value{}, true
		}
	} else if n == 0 {
		return value{}, false
	}
	if n < 0 || n > len(parts) {
		return value{}, true
	}
	return textValue(parts[n-1])
}

func present(a []value) (list []string) {
	for _, v := range a {
		if !v.null {
			list = append(list, v.s)
		}
	}
	return list
}

// referenceLike makes a regular expression of a pattern; its characters are folded behind
// their escapes.
func referenceLike(a []value, fold func(rune) rune) (value, bool) {
	pattern, escape := []rune(a[1].s), []rune(a[2].s)
	if len(escape) > 1 {
		return value{}, false
	}
	var re strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch r := pattern[i]; {
		case len(escape) == 1 && r == escape[0]:
			if i++; i == len(pattern) {
				return value{}, false
			}
			re.WriteString(regexp.QuoteMeta(string(fold(pattern[i]))))
		case r == '%':
			re.WriteString(".*")
		case r == '_':
			re.WriteString(".")
		default:
			re.WriteString(regexp.QuoteMeta(string(fold(r))))
		}
	}
	return value{b: regexp.MustCompile("(?s)^" + re.String() + "$").MatchString(strings.Map(fold, a[0].s))}, true
}

// referenceJSONValue decodes the whole text. It knows only numbers without exponents.
func referenceJSONValue(a []value) (value, bool) {
	steps, err := expr.ParsePath(a[1].s)
	if err != nil {
		return value{}, false
	}
	none := value{null: true}
	d := json.NewDecoder(strings.NewReader(a[0].s))
	d.UseNumber()
	var document any
	if err := d.Decode(&document); err != nil {
		return none, true
	}
	if _, err := d.Token(); err != io.EOF {
		return none, true
	}
	list := []any{document}
	for _, step := range steps {
		list = lax(list, step)
	}
	if len(list) != 1 {
		return none, true
	}
	switch x := list[0].(type) {
	case string:
		return textValue(x)
	case json.Number:
		return textValue(x.String())
	case bool:
		return textValue([]string{"false", "true"}[one(x)])
	}
	return none, true
}

func lax(list []any, step expr.Step) (next []any) {
	for _, x := range list {
		array, isArray := x.([]any)
		if !isArray {
			array = []any{x}
		}
		if step.Element {
			if step.Index < len(array) {
				next = append(next, array[step.Index])
			}
			continue
		}
		for _, y := range array {
			if object, ok := y.(map[string]any); ok {
				if z, ok := object[step.Field]; ok {
					next = append(next, z)
				}
			}
		}
	}
	return next
}

// referenceCall computes a function of the table.
func referenceCall(e *expr.Expr, args []value, row int) (value, *RowError) {
	for _, f := range testFunctions() {
		same := len(f.args) == len(args) && f.name == e.Func
		for i := 0; same && i < len(args); i++ {
			same = f.args[i] == e.Args[i].Type.Kind
		}
		if !same {
			continue
		}
		if !f.nulls && slices.ContainsFunc(args, func(v value) bool { return v.null }) {
			return value{null: true}, nil
		}
		v, ok := f.f(args)
		if !ok {
			return value{}, &RowError{Row: row, Text: e.Text}
		}
		return v, nil
	}
	panic("no reference for " + e.Func)
}
