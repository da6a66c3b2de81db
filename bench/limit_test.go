package main

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	const rows, copies = 30_000, 2 // more than a block
	dir, want := t.TempDir(), answersOf(rows)
	for _, query := range []string{"behavior", "user"} {
		for _, format := range []string{"json", "csv"} {
			file, err := generate(dir, format, rows)
			if err != nil {
				t.Fatal(err)
			}
			files, err := linked(file, filepath.Join(dir, format), copies)
			if err != nil {
				t.Fatal(err)
			}
			for _, kind := range []string{"scan", "validate"} {
				for goroutines := 1; goroutines <= 3; goroutines++ {
					l := limit{query, format, kind, goroutines}
					got, _, err := l.count(files)
					if err != nil {
						t.Fatal(err)
					}
					if err := got.check(query, want, copies); err != nil {
						t.Errorf("%v of %s: %v", l, format, err)
					}
				}
			}
		}
	}
}

// textCounts is what a loop counts in a text, in a readable form.
func textCounts(t *testing.T, l limit, text string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got, _, err := l.count([]string{file})
	if err != nil {
		return "", err
	}
	if l.query == "behavior" {
		return fmt.Sprint(got.texts(), " ", got.nulls), nil
	}
	all := map[int64]int64{}
	got.each(func(k, n int64) { all[k] = n })
	return fmt.Sprint(all, " ", got.nulls), nil
}

func TestValidLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ query, format, text, want string }{
		{"behavior", "json", `{"behavior":"pv"}`, "map[pv:1] 0"},
		{"behavior", "json", "{\"behavior\":\"pv\"}\n{\"ts\":1,\"behavior\":\"pv\"}\r\n\n \n{ \"behavior\" : \"buy\" }\n", "map[buy:1 pv:2] 0"},
		{"behavior", "json", `{"user_id":1,"behavior":null}` + "\n{}\n" + `{"behaviors":"pv"}`, "map[] 3"},
		{"behavior", "json", `{"behavior":"pv","behavior":"a longer text"}` + "\n" + `{"behavior":""}`, "map[:1 a longer text:1] 0"},
		{"behavior", "json", `{"behavior":"\u0070v"}` + "\n" + `{"behavior":"é\ud83d\ude00"}`, "map[pv:1 é😀:1] 0"},
		{"behavior", "json", `{"x":{"behavior":"no","y":[1,"]}"]},"behavior":"pv","z":-1.5e3}`, "map[pv:1] 0"},
		{"behavior", "json", `{"behavio\u0072":"pv","x":"\""}`, "map[pv:1] 0"},
		{"user", "json", `{"user_id":12}` + "\n" + `{"user_id":-12}` + "\n" + `{"user_id":1.2e1}` + "\n" + `{"user_id":12.0}` + "\n" + `{"user_id":0}`, "map[-12:1 0:1 12:3] 0"},
		{"user", "json", `{"user_id":9223372036854775807}` + "\n" + `{"user_id":-9223372036854775808}` + "\n" + `{"user_id":123456789012345678}`, "map[-9223372036854775808:1 123456789012345678:1 9223372036854775807:1] 0"},
		{"user", "json", `{"user_id":1,"user_id":12345678}` + "\n" + `{"ts":12345678901234567890123,"user_id":123456789}`, "map[12345678:1 123456789:1] 0"},
		{"behavior", "csv", "1,2,3,pv,5\n1,2,3,pv,\r\n\n1,2,3,,5\n1,2,3,\"\",5\n1,2,3,\"a, b\"\"\",5", "map[:1 a, b\":1 pv:2] 1"},
		{"behavior", "csv", "1,2,3,é,5\nx y,2,a long text in a field,a long text,5\n1,2,3,77,5\n1,2,3,12345678,5\n", "map[12345678:1 77:1 a long text:1 é:1] 0"},
		{"user", "csv", "1,2,3,pv,5\n+1,2,3,pv,5\n001,a,,,\n1.0,2,3,pv,5\n\"1\",2,3,pv,5\n-1,2,3,\"pv\",5\n,2,3,pv,5\n", "map[-1:1 1:5] 1"},
		{"user", "csv", "9223372036854775807,2,3,pv,5\n123456789012345678,2,3,pv,5\n12345678,2,3,pv,5", "map[12345678:1 123456789012345678:1 9223372036854775807:1] 0"},
	} {
		for goroutines := 1; goroutines <= 3; goroutines++ {
			got, err := textCounts(t, limit{c.query, c.format, "validate", goroutines}, c.text)
			if err != nil || got != c.want {
				t.Errorf("%s of %q, %d goroutines: %s, %v; want %s", c.query, c.text, goroutines, got, err, c.want)
			}
		}
	}
}

func TestMalformedLines(t *testing.T) {
	t.Parallel()
	lines := map[string][]string{
		"behavior json": {
			`x`, `[]`, `1`, `{`, `}`, `{"behavior":"pv"`, `{"behavior":"pv"}}`, `{"behavior":"pv"},`, `{"behavior":"pv"} {}`, `{"behavior":"pv",}`, `{,"behavior":"pv"}`,
			`{"behavior":"pv" "ts":1}`, `{"behavior":"pv","ts"}`, `{"behavior":"pv","ts":}`, `{"behavior":"pv","ts":01}`, `{"behavior":"pv","ts":1.}`, `{"behavior":"pv","ts":1x}`,
			`{"behavior":"pv","ts":-}`, `{"behavior":"pv","ts":+1}`, `{"behavior":"pv","ts":tru}`, `{"behavior":"pv","x":"\x"}`, `{"behavior":"pv","x":"` + "\x01" + `"}`, `{"behavior":"pv","x":[1,]}`,
			`{"behavior":"pv","x":[}`, `{"behavior":pv}`, `{"behavior":7}`, `{"behavior":true}`, `{"behavior":["pv"]}`, `{"behavior":"pv}`, `{"behavior":"p` + "\xff" + `v"}`, `{"behavior":"\ud83d"}`,
			`{"behavior":7,"behavior":"pv"}`, `{behavior:"pv"}`, `{"behavior";"pv"}`, `{"behavior":"pv"]`, `{"behavior":"pv","x":12345678901x}`,
		},
		"user json": {
			`{"user_id":"7"}`, `{"user_id":7.5}`, `{"user_id":07}`, `{"user_id":9223372036854775808}`, `{"user_id":1e30}`, `{"user_id":true}`, `{"user_id":}`, `{"user_id":7,"behavior":"pv}`,
			`{"user_id":123456789012345678901}`, `{"user_id":7`, `{"user_id":7}7`, `{"user_id":{}}`,
		},
		"behavior csv": {
			"1,2,3,pv", "1,2,3,pv,5,6", "1", `1,2,3,"pv,5`, `1,2,3,p"v,5`, `1,2,3,"p"v,5`, `"1,2,3,pv,5`, "1,2,3,\xff,5", "1,2,3,pv,5\"", `1,2,"3` + "\n" + `",pv,5`,
		},
		"user csv": {
			"x,2,3,pv,5", "1.5,2,3,pv,5", "9223372036854775808,2,3,pv,5", "1,2,3,pv", "1,2,3,pv,5,6", "1x,2,3,pv,5", " 1,2,3,pv,5", "1,2,3,\"pv,5", "--1,2,3,pv,5", "1e,2,3,pv,5", "12345678901234567890,2,3,pv,5",
		},
	}
	around := map[string]string{"json": `{"user_id":1,"behavior":"pv"}`, "csv": "1,2,3,pv,5"}
	for kind, all := range maps.All(lines) {
		query, format, _ := strings.Cut(kind, " ")
		for _, line := range all {
			plain := strings.Repeat(around[format]+"\n", 10)
			for _, text := range []string{line, plain + line, plain + line + "\n" + plain, plain + plain + line + "\r\n" + plain} {
				if got, err := textCounts(t, limit{query, format, "validate", 2}, text); err == nil {
					t.Errorf("%s of %q gave %s", query, text, got)
				}
			}
		}
	}
}

// Whatever is damaged in a line, a loop finds in it what the slow way does.
func TestFastAndSlow(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	const bytesOf = "{}[]:,\"\\\n\r 0179-+.eEnull\x00\x1f\x7f\xc3\xa9\xff"
	var lines []row
	for r := range generated(40) {
		lines = append(lines, r)
	}
	for range 1_500 {
		for _, format := range []string{"json", "csv"} {
			var text []byte
			for range 1 + random.IntN(6) {
				if r := lines[random.IntN(len(lines))]; format == "csv" {
					text = r.appendCSV(text)
				} else {
					text = r.append(text)
				}
			}
			for range random.IntN(3) {
				i, c := random.IntN(len(text)), bytesOf[random.IntN(len(bytesOf))]
				switch random.IntN(3) {
				case 0:
					text[i] = c
				case 1:
					text = slices.Insert(text, i, c)
				default:
					text = slices.Delete(text, i, i+1)
				}
			}
			if len(text) == 0 || text[len(text)-1] != '\n' {
				text = append(text, '\n')
			}
			for _, query := range []string{"behavior", "user"} {
				fast, slow := countedIn(query, format, text)
				if fast != slow {
					t.Fatalf("%s of %q: %s, and line by line %s", query, text, fast, slow)
				}
			}
		}
	}
}

// countedIn is what a block comes to, and what its lines do in the slow way.
func countedIn(query, format string, text []byte) (fast, slow string) {
	shown := func(t *tally, failed bool) string {
		if failed {
			return "an error"
		}
		t.flush()
		all := map[int64]int64{}
		t.each(func(k, n int64) { all[k] = n })
		return fmt.Sprint(t.rows, t.nulls, t.texts(), all)
	}
	b := make([]byte, len(text)+pad)
	for i := range b {
		b[i] = "1\"},x"[i%5] // what is behind a block does not matter
	}
	copy(b, text)
	t := newTally(1)
	err := limit{query, format, "validate", 1}.counter(t).block(b, len(text))
	fast = shown(t, err != nil)
	t, failed := newTally(1), false
	line := newJSONLines(query, t).slow
	if format == "csv" {
		line = newCSVLines(query, t).slow
	}
	for l := range bytes.Lines(text) {
		failed = failed || line(bytes.TrimSuffix(l, []byte("\n"))) != nil
	}
	return fast, shown(t, failed)
}

// Lines and fields may be longer than what is looked at at once, and all of a line may be ends of fields.
func TestLongLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3*csvWindow)
	for format, text := range map[string]string{
		"csv":  "1,2,3,pv," + long + "\n" + strings.Repeat("1,,,pv,\n", csvWindow) + "1," + long + ",3,\"pv\",5\n",
		"json": `{"behavior":"pv","x":"` + long + "\"}\n" + strings.Repeat(`{"behavior":"pv"}`+"\n", csvWindow) + `{"` + long + `":1,"behavior":"pv"}`,
	} {
		got, err := textCounts(t, limit{"behavior", format, "validate", 2}, text)
		if want := fmt.Sprintf("map[pv:%d] 0", csvWindow+2); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", format, got, err, want)
		}
	}
	commas := strings.Repeat(",", 3*csvWindow) + "\n"
	if got, err := textCounts(t, limit{"behavior", "csv", "validate", 1}, "1,2,3,pv,5\n"+commas); err == nil {
		t.Errorf("a line of commas gave %s", got)
	}
}

func TestGenerated(t *testing.T) {
	t.Parallel()
	const rows = 5_000
	a, other := answersOf(rows), answersOf(rows-1)
	var behaviors, of int64
	for _, n := range a.behaviors {
		behaviors += n
	}
	for _, n := range a.users {
		of += n
	}
	if behaviors != rows || of != rows || a.all.rows != rows || a.all == other.all {
		t.Errorf("of %d rows are %d behaviours, %d of users, %v", rows, behaviors, of, a.all)
	}
	if share := float64(a.fifth.rows) / rows; share < 0.17 || share > 0.23 {
		t.Errorf("the filter keeps %.2f", share)
	}
	if a.all.times(2) != (written{2 * a.all.rows, 2 * a.all.sum}) {
		t.Error("two copies are not twice one")
	}
}
