package eval

import (
	"bytes"

	"weir/exec/batch"
	"weir/planner/expr"
)

// compileJSONValue makes JSON_VALUE: the scalar at a path, as text.
func compileJSONValue(e *expr.Expr, args []node, _ Env) (node, error) {
	if err := checkKinds(e, allStrings(2)...); err != nil {
		return nil, err
	}
	p := &jsonPath{}
	if path, ok := constantText(args[1]); ok {
		p.set(path)
		args = args[:1]
	}
	return newCall(e, args, func(out *batch.Vector, args []*batch.Vector, rows []int32) (int, verdict) {
		return write(out, rows, func(dst []byte, row int) ([]byte, verdict) {
			if len(args) == 2 {
				p.set(args[1].Str(row))
			}
			if p.problem != "" {
				return dst, p.problem
			}
			return p.appendValue(dst, args[0].Str(row))
		})
	}), nil
}

// A jsonPath looks for the value at a path of JSON texts, in SQL's lax mode: a field of an
// array is that of its elements, element 0 of anything else is the thing itself. A text is
// read once, to its end, since one that is not well-formed has no values.
type jsonPath struct {
	text    []byte // of the path; nil before it is set
	steps   []expr.Step
	problem verdict

	scan     jsonScan
	found    int // values at the path
	from, to int // the last one
	name     []byte
}

// set makes ready for a path, unless it is the present one.
func (p *jsonPath) set(path []byte) {
	if p.text != nil && bytes.Equal(p.text, path) {
		return
	}
	p.text = append(p.text[:0], path...)
	if p.text == nil {
		p.text = []byte{}
	}
	p.problem = ""
	var err error
	if p.steps, err = expr.ParsePath(string(path)); err != nil {
		p.problem = verdict(err.Error())
	}
}

// appendValue appends the text of the one scalar at the path.
func (p *jsonPath) appendValue(dst, data []byte) ([]byte, verdict) {
	p.scan, p.found = jsonScan{data: data}, 0
	p.scan.space()
	if !p.walk(p.steps, 0) {
		return dst, absent
	}
	if p.scan.space(); p.scan.at < len(data) || p.found != 1 {
		return dst, absent
	}
	token, ok := data[p.from:p.to], true
	switch token[0] {
	case '{', '[', 'n':
		return dst, absent
	case '"':
		dst = appendJSONText(dst, token[1:len(token)-1])
	case 't', 'f':
		dst = append(dst, token...)
	default:
		dst, ok = appendJSONNumber(dst, token)
	}
	if !ok {
		return dst, absent
	}
	return dst, ""
}

// walk reads a value and takes the steps from there; it reports whether the value is
// well-formed.
func (p *jsonPath) walk(steps []expr.Step, depth int) bool {
	if len(steps) == 0 {
		from := p.scan.at
		if !p.scan.skip(depth) {
			return false
		}
		p.found, p.from, p.to = p.found+1, from, p.scan.at
		return true
	}
	switch c, step := p.scan.peek(), steps[0]; {
	case c == '[':
		return p.walkArray(steps, depth+1)
	case step.Element && step.Index == 0:
		return p.walk(steps[1:], depth)
	case c == '{' && !step.Element:
		return p.walkObject(steps, depth+1)
	}
	return p.scan.skip(depth)
}

func (p *jsonPath) walkArray(steps []expr.Step, depth int) bool {
	if depth > maxJSONDepth {
		return false
	}
	if p.scan.at++; p.scan.closes(']') {
		return true
	}
	for i := 0; ; i++ {
		var ok bool
		switch step := steps[0]; {
		case step.Element && step.Index == i:
			ok = p.walk(steps[1:], depth)
		case !step.Element && p.scan.peek() == '{': // an array in the array is not opened
			ok = p.walk(steps, depth)
		default:
			ok = p.scan.skip(depth)
		}
		if !ok {
			return false
		}
		if more, ok := p.scan.next(']'); !more {
			return ok
		}
	}
}

// walkObject goes to the field of a name; of several the last one counts.
func (p *jsonPath) walkObject(steps []expr.Step, depth int) bool {
	if depth > maxJSONDepth {
		return false
	}
	if p.scan.at++; p.scan.closes('}') {
		return true
	}
	for found, from, to := p.found, p.from, p.to; ; {
		name, ok := p.scan.name()
		if !ok {
			return false
		}
		if p.same(name, steps[0].Field) {
			p.found, p.from, p.to = found, from, to
			ok = p.walk(steps[1:], depth)
		} else {
			ok = p.scan.skip(depth)
		}
		if !ok {
			return false
		}
		if more, ok := p.scan.next('}'); !more {
			return ok
		}
	}
}

// same compares a name as it stands in JSON.
func (p *jsonPath) same(name []byte, field string) bool {
	if bytes.IndexByte(name, '\\') < 0 {
		return string(name) == field
	}
	p.name = appendJSONText(p.name[:0], name)
	return string(p.name) == field
}
