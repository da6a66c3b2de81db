package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/metastore"
	"weir/planner/expr"
	"weir/server"
)

func script(sql string) map[string]string { return map[string]string{"sql": sql} }

const numbersTable = "CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen')"

// TestShowFunctions: every function and aggregate of the language is listed.
func TestShowFunctions(t *testing.T) {
	t.Parallel()
	answer := call[server.SQLAnswer](t, newAPI(t), "POST", "/v1/sql", script("SHOW FUNCTIONS"), 200)
	type row struct {
		Function, Call, Text string
		Result               *string
	}
	listed := map[string]row{}
	for _, raw := range answer.Results[0].Rows {
		var r row
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatal(err)
		}
		if r.Call == "" || r.Text == "" || r.Result == nil && expr.FindFunction(r.Function) == nil {
			t.Errorf("something is missing: %s", raw)
		}
		listed[r.Call] = r
	}
	if want := len(expr.Functions()) + len(expr.AggregateFunctions()); len(listed) != want {
		t.Errorf("%d calls listed, want %d", len(listed), want)
	}
	gives := func(s string) *string { return &s }
	for _, want := range []row{
		{"SUBSTRING", expr.FindFunction("substring").Usage(), expr.FindFunction("substring").Doc, gives("STRING or BYTES")},
		{"COUNT", "COUNT(*)", "The number of rows.", gives("BIGINT")},
	} {
		if diff := cmp.Diff(want, listed[want.Call]); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// TestScriptTooLong: the answer of each statement may be as long as the catalog.
func TestScriptTooLong(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	if n := len(call[server.SQLAnswer](t, a, "POST", "/v1/sql", script(strings.Repeat("SHOW TABLES;", 1000)), 200).Results); n != 1000 {
		t.Errorf("%d results", n)
	}
	refused := call[server.Problem](t, a, "POST", "/v1/sql", script(strings.Repeat("SHOW TABLES;", 1001)), 422)
	if want := "a script for the catalog has 1000 statements at the most, this one has 1001"; refused.Errors[0].Message != want || refused.Errors[0].Column != 12001 {
		t.Errorf("%+v", refused.Errors)
	}
}

// overtaken is a catalog that others change just before this server does.
type overtaken struct {
	*metastore.Store
	before func(try int) error
	tries  int
}

func (o *overtaken) ChangeTables(ctx context.Context, seen []weir.Table, drop []string, create []weir.Table) error {
	o.tries++
	if err := o.before(o.tries); err != nil {
		return err
	}
	return o.Store.ChangeTables(ctx, seen, drop, create)
}

// TestOvertaken: a script that another request overtakes is worked out anew, and is
// refused where it does not fit any more.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	call[server.Table](t, a, "POST", "/v1/tables", script(numbersTable), 201)
	race := &overtaken{Store: a.store}
	slow := &api{store: a.store, log: &syncBuffer{}}
	slow.Handler = server.New(server.Deps{Service: a.fake, History: a.store, Tables: race, Logger: slog.New(slog.DiscardHandler)}, server.Options{})

	race.before = func(try int) error {
		if try == 1 {
			call[server.SQLAnswer](t, a, "POST", "/v1/sql", script("CREATE VIEW v AS SELECT n FROM numbers"), 200)
		}
		return nil
	}
	refused := call[server.Problem](t, slow, "POST", "/v1/sql", script("DROP TABLE numbers"), 409)
	if refused.Errors[0].Message != "the view v reads numbers" {
		t.Errorf("%+v", refused)
	}
	race.before = func(int) error {
		call[server.SQLAnswer](t, a, "POST", "/v1/sql", script(fmt.Sprintf("CREATE VIEW w%d AS SELECT 1 AS one", race.tries)), 200)
		return nil
	}
	race.tries = 100
	refused = call[server.Problem](t, slow, "POST", "/v1/sql", script("DROP VIEW v; DROP TABLE numbers"), 409)
	if want := "the catalog has just been changed by another request, and nothing of this one was carried out: try again"; refused.Detail != want {
		t.Error(refused.Detail)
	}
	if race.tries != 105 {
		t.Errorf("%d tries", race.tries-100)
	}
	call[server.Table](t, a, "GET", "/v1/tables/numbers", nil, 200)
}

// TestScriptsAtOnce: of scripts that replace a table and its view together, none leaves
// the view of one with the table of another.
func TestScriptsAtOnce(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	call[server.Table](t, a, "POST", "/v1/tables", script(numbersTable), 201)
	call[server.Table](t, a, "POST", "/v1/tables", script("CREATE VIEW v AS SELECT n FROM numbers"), 201)
	post := func(sql string) int {
		body, err := json.Marshal(script(sql))
		if err != nil {
			t.Error(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/sql", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		return w.Code
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 5 {
				table := fmt.Sprintf("CREATE TABLE numbers (c%d BIGINT) WITH ('connector' = 'datagen')", i)
				if code := post(fmt.Sprintf("DROP TABLE numbers; DROP VIEW v; %s; CREATE VIEW v AS SELECT c%d FROM numbers", table, i)); code != 200 && code != 409 {
					t.Errorf("a script was answered with %d", code)
				}
				if code := post("DESCRIBE v; EXPLAIN SELECT * FROM v"); code != 200 {
					t.Errorf("the view cannot be read: %d", code)
				}
			}
		})
	}
	wg.Wait()
}
