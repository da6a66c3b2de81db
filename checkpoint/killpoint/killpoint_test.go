package killpoint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Every point of the list is in the code once, and the code names no other.
func TestPointsOfTheCode(t *testing.T) {
	t.Parallel()
	used := map[string]string{}
	for _, at := range calls(t, filepath.Join("..", "..")) {
		if before, twice := used[at.point]; twice {
			t.Errorf("%s: point %q is at %s too", at.where, at.point, before)
		}
		used[at.point] = at.where
	}
	listed := map[string]bool{}
	for _, p := range Points() {
		if listed[p.Name] {
			t.Errorf("point %q is listed twice", p.Name)
		}
		listed[p.Name] = true
		if used[p.Name] == "" {
			t.Errorf("no code passes point %q", p.Name)
		}
	}
	for point, where := range used {
		if !listed[point] {
			t.Errorf("%s: point %q is not in the list", where, point)
		}
	}
}

type call struct{ point, where string }

// calls finds the calls of killpoint.Here below root.
func calls(t *testing.T, root string) (list []call) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "killpoint.Here(") {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if sel, ok := c.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Here" {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "killpoint" {
					where := fset.Position(c.Pos()).String()
					point, err := strconv.Unquote(c.Args[0].(*ast.BasicLit).Value)
					if err != nil {
						t.Errorf("%s: %v", where, err)
					}
					list = append(list, call{point, where})
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestPlan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want plan
		err  string
	}{
		{"", plan{}, ""},
		{"after-decision", plan{point: "after-decision", passage: 1}, ""},
		{"after-decision:3", plan{point: "after-decision", passage: 3}, ""},
		{"before-ack:2,stop,armed=/tmp/x", plan{"before-ack", 2, true, "/tmp/x"}, ""},
		{"after-lunch:1", plan{}, `WEIR_KILL=after-lunch:1: there is no point "after-lunch"`},
		{"after-ack:0", plan{}, `WEIR_KILL=after-ack:0: passages are counted from 1, not "0"`},
		{"after-ack:1,armed=", plan{}, `WEIR_KILL=after-ack:1,armed=: there is no option "armed="`},
		{"after-ack:1,slowly", plan{}, `WEIR_KILL=after-ack:1,slowly: there is no option "slowly"`},
	} {
		got, err := parse(c.text)
		if got != c.want || err == nil && c.err != "" || err != nil && err.Error() != c.err {
			t.Errorf("%s: %+v, %v", c.text, got, err)
		}
	}
	gone := plan{armed: filepath.Join(t.TempDir(), "none")}
	if gone.isArmed() {
		t.Error("armed without its file")
	}
	if err := os.WriteFile(gone.armed, nil, 0o644); err != nil || !gone.isArmed() {
		t.Errorf("not armed by its file: %v", err)
	}
}
