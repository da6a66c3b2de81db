package eval

import (
	"regexp"
	"strings"

	"weir/exec/batch"
	"weir/planner/expr"
)

var wholeMatch = &expr.Expr{Op: expr.OpLiteral, Type: expr.Type{Kind: expr.Int}, Literal: &expr.Literal{Int: 0}}

// patterns compiles regular expressions, each once as long as they are not too many.
type patterns struct {
	compiled map[string]compiled
}

type compiled struct {
	re      *regexp.Regexp
	problem verdict
}

const manyPatterns = 64

func (p *patterns) get(pattern []byte) (*regexp.Regexp, verdict) {
	c, ok := p.compiled[string(pattern)]
	if ok {
		return c.re, c.problem
	}
	if len(p.compiled) >= manyPatterns {
		clear(p.compiled)
	}
	re, err := regexp.Compile(string(pattern))
	if err != nil {
		c.problem = verdict(quoted(pattern) + " is no regular expression: " + strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	c.re = re
	if p.compiled == nil {
		p.compiled = map[string]compiled{}
	}
	p.compiled[string(pattern)] = c
	return c.re, c.problem
}

// compileExtract makes REGEXP_EXTRACT: what a group of the first match took, NULL where
// nothing matches, or the group took no part, or is none.
func compileExtract(e *expr.Expr, args []node, _ Env) (node, error) {
	if err := checkKinds(e, expr.String, expr.String, expr.Int); err != nil {
		return nil, err
	}
	p := &patterns{}
	return newCall(e, args, func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
			re, problem := p.get(args[1].Str(row))
			if problem != "" {
				return dst, problem
			}
			s, group := args[0].Str(row), args[2].Ints[row]
			if group < 0 || group > int64(re.NumSubexp()) {
				return dst, absent
			}
			if group == 0 {
				if at := re.FindIndex(s); at != nil {
					return append(dst, s[at[0]:at[1]]...), ""
				}
				return dst, absent
			}
			at := re.FindSubmatchIndex(s)
			if at == nil || at[2*group] < 0 {
				return dst, absent
			}
			return append(dst, s[at[2*group]:at[2*group+1]]...), ""
		})
	}), nil
}

// compileReplace makes REGEXP_REPLACE, of all matches.
func compileReplace(e *expr.Expr, args []node, _ Env) (node, error) {
	if err := checkKinds(e, allStrings(3)...); err != nil {
		return nil, err
	}
	p := &patterns{}
	return newCall(e, args, func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
			re, problem := p.get(args[1].Str(row))
			if problem != "" {
				return dst, problem
			}
			s, replacement := args[0].Str(row), args[2].Str(row)
			from, begin := len(dst), 0
			for _, at := range re.FindAllSubmatchIndex(s, -1) {
				dst = append(dst, s[begin:at[0]]...)
				dst = appendReplacement(dst, replacement, s, at)
				if begin = at[1]; len(dst)-from > maxString {
					return dst, tooLong
				}
			}
			return append(dst, s[begin:]...), ""
		})
	}), nil
}

// appendReplacement appends the replacement of a match: \1 to \9 are its groups, \& is
// the whole, \\ a backslash, and any other backslash itself.
func appendReplacement(dst, replacement, s []byte, at []int) []byte {
	for i := 0; i < len(replacement); i++ {
		c := replacement[i]
		if c != '\\' || i+1 == len(replacement) {
			dst = append(dst, c)
			continue
		}
		group := -1
		switch next := replacement[i+1]; {
		case next == '\\':
			i++
		case next == '&':
			group = 0
		case next >= '1' && next <= '9':
			group = int(next - '0')
		}
		if group < 0 {
			dst = append(dst, c)
			continue
		}
		i++
		if 2*group < len(at) && at[2*group] >= 0 {
			dst = append(dst, s[at[2*group]:at[2*group+1]]...)
		}
	}
	return dst
}
