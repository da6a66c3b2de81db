package expr

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePath(t *testing.T) {
	t.Parallel()
	field := func(name string) Step { return Step{Field: name} }
	element := func(n int) Step { return Step{Index: n, Element: true} }
	for text, want := range map[string][]Step{
		"$":                       nil,
		" lax $ . a ":             {field("a")},
		"$.a.b[0]['c d'][12].é_1": {field("a"), field("b"), element(0), field("c d"), element(12), field("é_1")},
		`$."a.b"["c\"d"]`:         {field("a.b"), field(`c"d`)},
		"$[ 3 ]":                  {element(3)},
		"$['']":                   {field("")},
	} {
		got, err := ParsePath(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s:\n%s", text, d)
		}
	}
	for text, want := range map[string]string{
		"":                       `"" is not a path such as $.name[0]: expected $, the whole value at character 1`,
		"a.b":                    `"a.b" is not a path such as $.name[0]: expected $, the whole value at character 1`,
		"$.é.":                   `"$.é." is not a path such as $.name[0]: expected a field's name (in double quotes where it is not made of letters, digits and _) at character 5`,
		"$x":                     `"$x" is not a path such as $.name[0]: expected '.' or '[' at character 2`,
		"$[":                     `"$[" is not a path such as $.name[0]: expected an element's number, from 0 on, or a field's name in quotes at character 3`,
		"$[-1]":                  `"$[-1]" is not a path such as $.name[0]: expected an element's number, from 0 on, or a field's name in quotes at character 3`,
		"$[1":                    `"$[1" is not a path such as $.name[0]: expected ']' at character 4`,
		"$[9999999999999999999]": `"$[9999999999999999999]" is not a path such as $.name[0]: expected a smaller number at character 3`,
		"$['a]":                  `"$['a]" is not a path such as $.name[0]: expected a name with its closing quote at character 3`,
		"$['it''s']":             `"$['it''s']" is not a path such as $.name[0]: expected ']' at character 7`,
		"$.a[*]":                 `"$.a[*]" leads to many values, and only one is wanted: name an element, such as [0]`,
		"strict $.a":             `the path "strict $.a" is strict; only lax paths are supported: leave out the word`,
		"$.a.size()":             `"$.a.size()" calls a method, which is not supported in a path`,
		"$.a?(@ > 1)":            `"$.a?(@ > 1)" has a filter, which is not supported in a path`,
	} {
		if _, err := ParsePath(text); err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestCheckLike(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pattern, escape, want string }{
		{"a%", `\`, ""},
		{`a\\`, `\`, ""},
		{`a\`, ``, ""},
		{`a\é`, `\`, ""},
		{`a\\\`, `\`, `the pattern "a\\\\\\" ends in its escape character "\\": write it twice to mean itself`},
		{"a!", "!", `the pattern "a!" ends in its escape character "!": write it twice to mean itself`},
		{"a", "!!", `ESCAPE "!!" is longer than one character`},
	} {
		got := ""
		if err := CheckLike(c.pattern, c.escape); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q escape %q:\ngot  %s\nwant %s", c.pattern, c.escape, got, c.want)
		}
	}
}
