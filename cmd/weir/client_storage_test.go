package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	soundReport   = `{"jobs":2,"objects":7,"bytes":2048,"sound":true,"given_up":0,"findings":[]}`
	harmedReport  = `{"jobs":1,"objects":3,"bytes":100,"sound":false,"given_up":0,"findings":[{"fault":"missing","job":"job_1","checkpoint":2,"savepoint":"sale","object":"job_1/2/manifest","bytes":0,"problem":"not there\u001b"},{"fault":"orphan","job":"job_1","checkpoint":1,"object":"job_1/1-aa/x-0/1-7","bytes":12,"problem":"nobody needs it"}]}`
	repairedTexts = `{"jobs":1,"objects":3,"bytes":100,"sound":true,"given_up":0,"findings":[{"fault":"orphan","object":"job_1/1-aa/x-0/1-7","bytes":12,"problem":"nobody needs it","repaired":"deleted"},{"fault":"foreign","object":"readme","bytes":1,"problem":"no object of Weir"}]}`
	lostReport    = `{"jobs":1,"objects":3,"bytes":100,"sound":true,"given_up":1,"findings":[{"fault":"damaged","job":"job_1","checkpoint":2,"object":"job_1/2/manifest","bytes":1,"problem":"unreadable","repaired":"checkpoint 2 was given up"}]}`
	bothReport    = `{"jobs":1,"objects":3,"bytes":100,"sound":false,"given_up":2,"findings":[]}`
	adoptables    = `{"checkpoints":[{"checkpoint":8,"final":false,"state_bytes":0,"known":false,"whole":false,"problem":"damaged"},{"checkpoint":7,"attempt":"4-0badcafe","type":"savepoint","savepoint":"sale","final":true,"state_bytes":4096,"known":true,"whole":true}]}`
	adopted       = `{"job":{"name":"shop","status":"FAILED"},"checkpoint":{"checkpoint":7,"attempt":"4-0badcafe","type":"checkpoint","final":false,"state_bytes":4096,"known":false,"whole":true}}`
)

// Each command asks what it has to, and prints the answer; its exit code says whether all
// that is kept is sound.
func TestStorageCommands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args, wants, answer string
		code                int
		stdout, stderr      string
	}{
		"sound": {"storage check", "GET /v1/storage/check?deep=false ", soundReport, 0, "2 jobs, 7 objects, 2.0 KiB: 0 findings\n", ""},
		"one":   {"storage check --job shop --deep", "GET /v1/storage/check?deep=true&job=shop ", soundReport, 0, "2 jobs, 7 objects, 2.0 KiB: 0 findings\n", ""},
		"harmed": {"storage check", "GET /v1/storage/check?deep=false ", harmedReport, 1, `
FAULT    OBJECT              SIZE  PROBLEM          REPAIR
missing  job_1/2/manifest     0 B  not there\x1b
orphan   job_1/1-aa/x-0/1-7  12 B  nobody needs it
1 job, 3 objects, 100 B: 2 findings
`, "weir: something that is to be kept is missing or damaged: see above\n"},
		"repaired": {"storage check --repair --unknown", `POST /v1/storage/repair {"unknown":true}`, repairedTexts, 0, `
FAULT    OBJECT              SIZE  PROBLEM            REPAIR
orphan   job_1/1-aa/x-0/1-7  12 B  nobody needs it    deleted
foreign  readme               1 B  no object of Weir  none
1 job, 3 objects, 100 B: 2 findings
`, ""},
		"lost": {"storage check --repair", `POST /v1/storage/repair {}`, lostReport, 1, `
FAULT    OBJECT            SIZE  PROBLEM     REPAIR
damaged  job_1/2/manifest   1 B  unreadable  checkpoint 2 was given up
1 job, 3 objects, 100 B: 1 finding
`, "weir: 1 checkpoint could not be restored any more, and the repair gave it up: see above; all else that is to be kept is sound\n"},
		"lost and harmed":   {"storage check --repair", `POST /v1/storage/repair {}`, bothReport, 1, "1 job, 3 objects, 100 B: 0 findings\n", "weir: something that is to be kept is missing or damaged: see above; besides, 2 checkpoints could not be restored any more, and the repair gave them up\n"},
		"as JSON":           {"storage check -o json", "GET /v1/storage/check?deep=false ", harmedReport, 1, harmedReport, "weir: something that is to be kept is missing or damaged: see above\n"},
		"empty job":         {"storage check --repair --job=", "", "", 2, "", "weir: --job is empty: name one, or leave it out for all jobs\n"},
		"unknown alone":     {"storage check --unknown", "", "", 2, "", "weir: --unknown says what --repair may delete: give both\n"},
		"adoptable":         {"job adopt shop --list", "GET /v1/jobs/shop/adoptable ", adoptables, 0, "\nID  TYPE       ATTEMPT        SIZE  KNOWN  WHOLE  PROBLEM\n 8                             0 B  false  false  damaged\n 7  savepoint  4-0badcafe  4.0 KiB  true   true\n", ""},
		"adoptable as JSON": {"job adopt shop --list -o json", "GET /v1/jobs/shop/adoptable ", adoptables, 0, strings.TrimSuffix(strings.TrimPrefix(adoptables, `{"checkpoints":`), "}"), ""},
		"adopt":             {"job adopt shop", "POST /v1/jobs/shop/adopt {}", adopted, 0, "shop  adopted checkpoint 7 of attempt 4-0badcafe; start it with: weir job start shop\n", ""},
		"adopt one":         {"job adopt shop --checkpoint 7", `POST /v1/jobs/shop/adopt {"checkpoint":7}`, adopted, 0, "shop  adopted checkpoint 7 of attempt 4-0badcafe; start it with: weir job start shop\n", ""},
		"adopt none":        {"job adopt shop --checkpoint 0", "", "", 2, "", "weir: --checkpoint is 0: give 1 or more, or leave it out for the newest whole one\n"},
		"nothing to adopt":  {"job adopt shop", "POST /v1/jobs/shop/adopt {}", `{"status":409,"title":"Conflict","detail":"there is nothing to adopt"}`, 1, "", "weir: there is nothing to adopt\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if asked := r.Method + " " + r.URL.String() + " " + strings.TrimSpace(string(body)); err != nil || asked != c.wants {
					t.Errorf("asked %q (%v), want %q", asked, err, c.wants)
				}
				if strings.Contains(c.answer, `"status":409`) {
					w.WriteHeader(http.StatusConflict)
				}
				io.WriteString(w, c.answer)
			}))
			t.Cleanup(srv.Close)
			var out, said strings.Builder
			code := execute(t.Context(), append(strings.Fields(c.args), "--server", srv.URL), strings.NewReader(""), &out, &said)
			if code != c.code || said.String() != c.stderr {
				t.Errorf("exit code %d, %q; want %d, %q", code, said.String(), c.code, c.stderr)
			}
			got, want := lines(out.String()), strings.TrimPrefix(c.stdout, "\n")
			if strings.HasSuffix(c.args, "json") {
				got, want = normal(t, got), normal(t, want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// lines are those of text without what fills them up.
func lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// normal is JSON with its fields in order.
func normal(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
