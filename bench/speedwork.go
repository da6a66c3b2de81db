package main

import (
	"fmt"
	"strings"
)

// A work is what is measured of Weir, beside others that do the same.
type work struct {
	name, title string
	query       string // behavior, user, pass or filter
	format      string // json or csv of the files that are read; "": a datagen makes the rows
	target      string // blackhole or csv; "": the rows are a live result
	loops       []limit
	copies      bool // beside reading and writing alone
	workers     bool // on two workers beside one
	flink       string
	wanted      []target
}

// A target is a ratio that is to be reached.
type target struct {
	beside string // a contender's name
	least  float64
}

const (
	onWeir  = "weir"
	twoWeir = "weir, two workers"
	asCopy  = "read and write alone"
)

// works are all of them, in the order in which they are measured.
func works() []work {
	valid := func(query, format string, least float64) (loops []limit, wanted target) {
		for _, kind := range []string{"scan", "validate"} {
			for _, goroutines := range []int{1, 2} {
				loops = append(loops, limit{query, format, kind, goroutines})
			}
		}
		return loops, target{loops[3].String(), least}
	}
	behaviorJSON, behaviorLoop := valid("behavior", "json", 0.6)
	userJSON, userLoop := valid("user", "json", 0.4)
	behaviorCSV, behaviorCSVLoop := valid("behavior", "csv", 0.4)
	userCSV, userCSVLoop := valid("user", "csv", 0.4)
	heap, rocks := func(least float64) target { return target{flinkHeap, least} }, target{flinkRocks, 20}
	return []work{
		{name: "behavior-json", title: "GROUP BY behavior (4 keys), JSON", query: "behavior", format: "json", loops: behaviorJSON, flink: "behavior", wanted: []target{behaviorLoop, heap(10)}},
		{name: "user-json", title: "GROUP BY user_id (1 M keys), JSON", query: "user", format: "json", loops: userJSON, flink: "user", wanted: []target{userLoop, heap(10), rocks}},
		{name: "behavior-csv", title: "GROUP BY behavior, CSV", query: "behavior", format: "csv", loops: behaviorCSV, flink: "behavior", wanted: []target{behaviorCSVLoop, heap(8)}},
		{name: "user-csv", title: "GROUP BY user_id, CSV", query: "user", format: "csv", loops: userCSV, flink: "user", wanted: []target{userCSVLoop, heap(8)}},
		{name: "behavior-json-blackhole", title: "GROUP BY behavior, JSON, every change into a blackhole", query: "behavior", format: "json", target: "blackhole", loops: behaviorJSON[3:], flink: "behavior", wanted: []target{heap(10)}},
		{name: "user-json-blackhole", title: "GROUP BY user_id, JSON, every change into a blackhole", query: "user", format: "json", target: "blackhole", loops: userJSON[3:], flink: "user", wanted: []target{heap(10), rocks}},
		{name: "pass", title: "two columns of JSON into a blackhole", query: "pass", format: "json", target: "blackhole", flink: "pass", wanted: []target{heap(6)}},
		{name: "filter", title: "two columns of a fifth of the rows, JSON into a blackhole", query: "filter", format: "json", target: "blackhole", flink: "filter", wanted: []target{heap(6)}},
		{name: "pass-csv", title: "two columns of JSON into CSV files", query: "pass", format: "json", target: "csv", copies: true, wanted: []target{{asCopy, 0.5}}},
		{name: "filter-csv", title: "two columns of a fifth of the rows, JSON into CSV files", query: "filter", format: "json", target: "csv", copies: true, wanted: []target{{asCopy, 0.5}}},
		{name: "datagen", title: "datagen, GROUP BY user_id (1 M keys)", query: "user", flink: "genuser"},
		{name: "workers", title: "GROUP BY user_id, JSON, two workers over NATS", query: "user", format: "json", workers: true, wanted: []target{{onWeir, 0.75}}},
	}
}

// script is the work's as a user writes it: of the files in a folder, or of so many rows
// of a datagen, into the folder out where it has files as its target.
func (w work) script(path, out string, rows int) string {
	var s strings.Builder
	if w.format == "" {
		fmt.Fprintf(&s, "CREATE TABLE b (user_id BIGINT)\n  WITH ('connector' = 'datagen', 'number-of-rows' = '%d', 'fields.user_id.min' = '0', 'fields.user_id.max' = '%d');\n", rows, users-1)
	} else {
		fmt.Fprintf(&s, "CREATE TABLE b (user_id BIGINT, item_id BIGINT, category_id BIGINT, behavior STRING, ts BIGINT)\n  WITH ('connector' = 'filesystem', 'path' = '%s', 'format' = '%s');\n", path, w.format)
	}
	s.WriteString("SET 'checkpoint.interval' = '1 s';\n")
	query := map[string]string{
		"behavior": "SELECT behavior, COUNT(*) AS n FROM b GROUP BY behavior",
		"user":     "SELECT user_id, COUNT(*) AS n FROM b GROUP BY user_id",
		"pass":     "SELECT user_id, behavior FROM b",
		"filter":   fmt.Sprintf("SELECT user_id, behavior FROM b WHERE item_id < %d", fifth),
	}[w.query]
	if w.target != "" {
		columns := map[string]string{"behavior": "behavior STRING, n BIGINT", "user": "user_id BIGINT, n BIGINT"}[w.query]
		if columns == "" {
			columns = "user_id BIGINT, behavior STRING"
		}
		with := "'connector' = 'blackhole'"
		if w.target == "csv" {
			with = fmt.Sprintf("'connector' = 'filesystem', 'path' = '%s', 'format' = 'csv'", out)
		}
		fmt.Fprintf(&s, "CREATE TABLE o (%s) WITH (%s);\n", columns, with)
		query = "INSERT INTO o " + query
	}
	return s.String() + query + ";\n"
}

// wantedRows are those that the target is given of one copy of the file; nil where they are changes.
func (w work) wantedRows(a *answers) *written {
	switch w.query {
	case "pass":
		return &a.all
	case "filter":
		return &a.fifth
	}
	return nil
}
