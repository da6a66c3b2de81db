package expr

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Step of a JSON path goes to a field of an object, or to an element of an array.
type Step struct {
	Field   string
	Index   int
	Element bool // to the element at Index, not to Field
}

// ParsePath reads the path that JSON_VALUE takes: $, and then any number of .name,
// ."name", ['name'], ["name"] and [0], in SQL's lax mode, which may be named in front.
func ParsePath(text string) ([]Step, error) {
	p := pathParser{text: text, rest: strings.TrimSpace(text)}
	if after, ok := strings.CutPrefix(p.rest, "strict "); ok && strings.HasPrefix(strings.TrimSpace(after), "$") {
		return nil, fmt.Errorf("the path %q is strict; only lax paths are supported: leave out the word", text)
	}
	if after, ok := strings.CutPrefix(p.rest, "lax "); ok {
		p.rest = strings.TrimSpace(after)
	}
	if !strings.HasPrefix(p.rest, "$") {
		return nil, p.expected("$, the whole value")
	}
	p.rest = p.rest[1:]
	var steps []Step
	for p.rest = strings.TrimSpace(p.rest); p.rest != ""; p.rest = strings.TrimSpace(p.rest) {
		step, err := p.step()
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, nil
}

type pathParser struct{ text, rest string }

func (p *pathParser) expected(what string) error {
	at := utf8.RuneCountInString(p.text[:len(p.text)-len(p.rest)]) + 1
	return fmt.Errorf("%q is not a path such as $.name[0]: expected %s at character %d", p.text, what, at)
}

func (p *pathParser) step() (Step, error) {
	switch p.rest[0] {
	case '.':
		p.rest = strings.TrimSpace(p.rest[1:])
		if strings.HasPrefix(p.rest, `"`) {
			name, err := p.quoted()
			return Step{Field: name}, err
		}
		n := 0
		for n < len(p.rest) {
			r, size := utf8.DecodeRuneInString(p.rest[n:])
			if r != '_' && r != '$' && !unicode.IsLetter(r) && (n == 0 || !unicode.IsDigit(r)) {
				break
			}
			n += size
		}
		if n == 0 {
			return Step{}, p.expected(`a field's name (in double quotes where it is not made of letters, digits and _)`)
		}
		name := p.rest[:n]
		if p.rest = p.rest[n:]; strings.HasPrefix(p.rest, "(") {
			return Step{}, fmt.Errorf("%q calls a method, which is not supported in a path", p.text)
		}
		return Step{Field: name}, nil
	case '[':
		p.rest = strings.TrimSpace(p.rest[1:])
		return p.subscript()
	case '?':
		return Step{}, fmt.Errorf("%q has a filter, which is not supported in a path", p.text)
	}
	return Step{}, p.expected("'.' or '['")
}

// subscript reads what is between brackets, and the closing one.
func (p *pathParser) subscript() (s Step, err error) {
	switch {
	case p.rest != "" && (p.rest[0] == '\'' || p.rest[0] == '"'):
		if s.Field, err = p.quoted(); err != nil {
			return s, err
		}
	case strings.HasPrefix(p.rest, "*"):
		return s, fmt.Errorf("%q leads to many values, and only one is wanted: name an element, such as [0]", p.text)
	default:
		n := 0
		for n < len(p.rest) && p.rest[n] >= '0' && p.rest[n] <= '9' {
			n++
		}
		if n == 0 {
			return s, p.expected("an element's number, from 0 on, or a field's name in quotes")
		}
		if s.Index, err = strconv.Atoi(p.rest[:n]); err != nil || s.Index > 1<<30 {
			return s, p.expected("a smaller number")
		}
		s.Element, p.rest = true, p.rest[n:]
	}
	if p.rest = strings.TrimSpace(p.rest); !strings.HasPrefix(p.rest, "]") {
		return s, p.expected("']'")
	}
	p.rest = p.rest[1:]
	return s, nil
}

// quoted reads a name in quotes; a backslash takes the next character literally.
func (p *pathParser) quoted() (string, error) {
	var name strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == p.rest[0]:
			p.rest = p.rest[i+1:]
			return name.String(), nil
		case c == '\\' && i+1 < len(p.rest):
			i++
			name.WriteByte(p.rest[i])
		default:
			name.WriteByte(c)
		}
	}
	return "", p.expected("a name with its closing quote")
}

// CheckLike says what is wrong with a constant pattern of LIKE and its escape character,
// which is empty where there is none.
func CheckLike(pattern, escape string) error {
	if utf8.RuneCountInString(escape) > 1 {
		return fmt.Errorf("ESCAPE %q is longer than one character", escape)
	}
	if escape == "" {
		return nil
	}
	for rest := pattern; ; {
		i := strings.Index(rest, escape)
		if i < 0 {
			return nil
		}
		rest = rest[i+len(escape):]
		if rest == "" {
			return fmt.Errorf("the pattern %q ends in its escape character %q: write it twice to mean itself", pattern, escape)
		}
		_, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
	}
}
