package weir_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// imports is the table of ARCHITECTURE §3: which of our packages each of our
// packages may import. A trailing "/..." means the folder's packages too.
var imports = map[string][]string{
	"weir":          {},
	"planner/civil": {},
	"planner/expr":  {},
	"planner/plan":  {"weir", "planner/expr"},
	"planner/sql":   {},
	"planner":       {"weir", "planner/sql", "planner/plan", "planner/expr", "planner/civil"},

	"checkpoint/killpoint": {},
	"checkpoint/blob":      {"weir", "checkpoint/killpoint"},
	"checkpoint":           {"weir", "planner/plan", "checkpoint/blob", "checkpoint/killpoint"},

	"exec/batch":  {},
	"exec/eval":   {"planner/expr", "planner/civil", "exec/batch"},
	"exec/state":  {"weir", "exec/batch", "checkpoint", "checkpoint/blob"},
	"exec":        {"weir", "planner/plan", "planner/expr", "planner/civil", "exec/batch", "exec/eval", "checkpoint", "checkpoint/blob", "checkpoint/killpoint", "exec/state"},
	"exec/op":     {"weir", "exec", "planner/plan", "planner/expr", "planner/civil", "exec/batch", "exec/eval", "exec/state", "checkpoint", "checkpoint/blob"},
	"exec/source": {"weir", "exec", "planner/plan", "planner/expr", "planner/civil", "exec/batch", "exec/eval", "exec/state", "checkpoint/blob"},
	"exec/sink":   {"weir", "exec", "planner/plan", "planner/expr", "planner/civil", "exec/batch", "exec/eval", "exec/state", "checkpoint/blob", "checkpoint/killpoint"},
	"exec/deploy": {"weir", "planner/plan", "checkpoint"},
	"exec/worker": {"weir", "exec", "exec/...", "planner/plan", "planner/expr", "checkpoint", "checkpoint/blob", "checkpoint/killpoint"},

	"transport": {"weir"},
	"metastore": {"weir", "planner/plan", "checkpoint", "migrations"},

	"server/job": {"weir", "planner/plan", "checkpoint", "checkpoint/blob", "exec/deploy"},
	"server":     {"weir", "planner", "planner/plan", "planner/expr", "checkpoint", "server/job", "web", "openapi"},

	"web": {}, "openapi": {}, "migrations": {},
}

// testSupport lists the packages that exist for tests, tools and wiring: they import
// anything, and nothing but tests and each other may import them.
var testSupport = []string{
	"checkpoint/blob/blobtest", "checkpoint/blob/s3test", "checkpoint/checkpointtest", "checkpoint/clocktest", "checkpoint/sim", "exec/difftest", "exec/exectest", "metastore/metastoretest",
	"metastore/postgrestest", "transport/transporttest", "server/job/jobtest", "server/servertest", "docs/...", "openapi/gen", "bench/...", "cmd/...", "e2e/...",
}

// only names, for a library, the one package of ours that may import it.
var only = map[string]string{
	"github.com/nats-io/nats-server/v2": "transport",
	"github.com/nats-io/nats.go":        "transport",
	"modernc.org/sqlite":                "metastore",
	"github.com/minio/minio-go/v7":      "checkpoint/blob",
	"github.com/cockroachdb/pebble/v2":  "exec/state",
	"github.com/labstack/echo/v4":       "server",
	"github.com/spf13/cobra":            "cmd/weir",
	"github.com/prometheus":             "server",
}

// forbidden lists dependencies that must not reach a package, with the reason.
var forbidden = []struct{ pkg, dep, why string }{
	{"exec/worker", "weir/planner/sql", "a worker runs graphs, it reads no SQL"},
	{"exec/worker", "github.com/labstack/echo/v4", "a worker serves no HTTP API"},
	{"server", "github.com/cockroachdb/pebble/v2", "workers read state on request"},
	{"server", "weir/exec/state", "workers read state on request"},
}

// goroutines lists the files that start goroutines, each with its reason.
var goroutines = map[string]string{
	"checkpoint/collect.go":   "deletions, several at a time",
	"checkpoint/run.go":       "a coordinator's loop beside its reads, writes and clean-up",
	"cmd/weir/server.go":      "the parts of a server",
	"cmd/weir/up.go":          "the parts of weir up and its child processes",
	"cmd/weir/worker.go":      "the network beside the worker; the watch over standard input",
	"exec/build.go":           "tasks opened and restored side by side",
	"exec/state/database.go":  "calls that Pebble may never return from, each",
	"exec/state/fetch.go":     "pieces of a restore, read and decoded ahead",
	"exec/task.go":            "a task's uploads, off its loop",
	"exec/upload.go":          "a task's uploads at once, and a compaction",
	"exec/worker/attempt.go":  "one goroutine per task",
	"exec/worker/watching.go": "the question of which attempts are over, beside the watch",
	"exec/worker/worker.go":   "heartbeats beside commands; the tasks' reports",
	"server/job/channels.go":  "workers asked for their figures at once",
	"server/job/driver.go":    "a job's loop beside the actions that wait for others",
	"server/job/run.go":       "the lease, what workers say, one goroutine per job",
	"server/server.go":        "the HTTP listener and its shutdown",
	"transport/desk.go":       "served requests, one each",
}

type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	Deps       []string
}

func listPackages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports,Deps", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	return pkgs
}

// short gives the name of a package of ours as the table has it.
func short(path string) (name string, ours bool) {
	if path == "weir" {
		return path, true
	}
	return strings.CutPrefix(path, "weir/")
}

func matches(name, pattern string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == prefix || strings.HasPrefix(name, prefix+"/")
	}
	return name == pattern
}

func matchesAny(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(name, p) })
}

func TestImportTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range listPackages(t) {
		name, _ := short(p.ImportPath)
		seen[name] = true
		if matchesAny(name, testSupport) {
			continue
		}
		allowed, ok := imports[name]
		if !ok {
			t.Errorf("package %s is not in the table of ARCHITECTURE §3", name)
			continue
		}
		for _, dep := range p.Imports {
			if of, ours := short(dep); ours && !matchesAny(of, allowed) {
				t.Errorf("%s imports %s: not in the table of ARCHITECTURE §3", name, of)
			}
			for lib, owner := range only {
				if (dep == lib || strings.HasPrefix(dep, lib+"/")) && name != owner {
					t.Errorf("%s imports %s: only %s may", name, dep, owner)
				}
			}
		}
	}
	for name := range imports {
		if !seen[name] {
			t.Errorf("the table names package %s, which does not exist", name)
		}
	}
}

func TestForbiddenDependencies(t *testing.T) {
	t.Parallel()
	pkgs := listPackages(t)
	for _, f := range forbidden {
		i := slices.IndexFunc(pkgs, func(p pkg) bool { return p.ImportPath == "weir/"+f.pkg })
		if i < 0 {
			t.Errorf("the rule about %s has gone stale: no such package", f.pkg)
			continue
		}
		for _, dep := range pkgs[i].Deps {
			if dep == f.dep || strings.HasPrefix(dep, f.dep+"/") {
				t.Errorf("%s depends on %s: %s", f.pkg, dep, f.why)
			}
		}
	}
}

// sources calls f with each Go file of ours.
func sources(t *testing.T, f func(path string, fset *token.FileSet, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == "tools" || strings.HasPrefix(d.Name(), ".") && path != ".") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		f(filepath.ToSlash(path), fset, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestHouseRules(t *testing.T) {
	t.Parallel()
	started := map[string]bool{}
	sources(t, func(path string, fset *token.FileSet, file *ast.File) {
		test := strings.HasSuffix(path, "_test.go") || matchesAny(filepath.ToSlash(filepath.Dir(path)), testSupport) && !strings.HasPrefix(path, "cmd/")
		bubble := importsPath(file, "testing/synctest")
		ast.Inspect(file, func(n ast.Node) bool {
			at := func() string { return fmt.Sprint(fset.Position(n.Pos())) }
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "init" && n.Recv == nil {
					t.Errorf("%s: no init", at())
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && n.Sel.Name == "Sleep" && !bubble {
					t.Errorf("%s: no time.Sleep outside a synctest bubble", at())
				}
			case *ast.GoStmt:
				if !test {
					started[path] = true
				}
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" && len(n.Args) == 1 && !test {
					started[path] = true
				}
			}
			return true
		})
	})
	for path := range started {
		if goroutines[path] == "" {
			t.Errorf("%s starts goroutines and is not in the list", path)
		}
	}
	for path := range goroutines {
		if !started[path] {
			t.Errorf("the list says that %s starts goroutines: it does not", path)
		}
	}
}

func importsPath(file *ast.File, path string) bool {
	return slices.ContainsFunc(file.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"`+path+`"` })
}
