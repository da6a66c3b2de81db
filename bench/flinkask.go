package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A flinkAsk is a query for Flink and what it runs with.
type flinkAsk struct {
	query     string // of flinkQueries
	path      string // a file (see inParts) or a folder of them; genuser and empty need none
	format    string // "json" or "csv"
	backend   string // "hashmap" or "rocksdb"
	miniBatch bool
	rows      int // of genuser
	// jvm and settings come after those of the bench, and so replace them.
	jvm, settings []string
}

// flinkQueries are the queries by name: the columns of their table, those of the sink,
// and the SELECT.
func flinkQueries() map[string][3]string {
	const (
		behavior = "SELECT behavior, COUNT(*) FROM src GROUP BY behavior"
		user     = "SELECT user_id, COUNT(*) FROM src GROUP BY user_id"
		// All columns are in the table, as they are in the file: Flink itself reads those it needs. But there is a
		// watermark only where windows need it, for it is work for each row even where nothing asks for it.
		columns = "user_id BIGINT, item_id BIGINT, category_id BIGINT, behavior STRING, ts BIGINT"
		events  = columns + ", et AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR et AS et - INTERVAL '5' SECOND"
		counts  = "k BIGINT, n BIGINT"
		pairs   = "k BIGINT, b STRING"
	)
	return map[string][3]string{
		"behavior": {columns, "k STRING, n BIGINT", behavior},
		"empty":    {columns, "k STRING, n BIGINT", behavior},
		"user":     {columns, counts, user},
		"genuser":  {"user_id BIGINT", counts, user},
		"pass":     {columns, pairs, "SELECT user_id, behavior FROM src"},
		"filter":   {columns, pairs, "SELECT user_id, behavior FROM src WHERE item_id < 800000"},
		"tumble": {
			events, "s TIMESTAMP(3), e TIMESTAMP(3), k BIGINT, n BIGINT",
			"SELECT window_start, window_end, category_id, COUNT(*) FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(et), INTERVAL '10' SECOND)) " +
				"GROUP BY window_start, window_end, category_id",
		},
	}
}

// flinkUsers are the distinct users of genuser.
const flinkUsers = 1_000_000

// args are the program's: settings, and statements of which the last is the job, into a
// table of the connector that is named.
func (a flinkAsk) args(work, sink string) ([]string, error) {
	q, ok := flinkQueries()[a.query]
	if !ok {
		return nil, fmt.Errorf("no query %q", a.query)
	}
	path, err := filepath.Abs(a.path)
	if err != nil {
		return nil, err
	}
	switch a.query {
	case "genuser":
	case "empty":
		path = filepath.Join(work, "empty")
		err = os.WriteFile(path, nil, 0o644)
	case "tumble": // its rows are in order of time: read as they are
	default:
		path, err = inParts(path, filepath.Join(work, "rows"), flinkParallelism)
	}
	if err != nil {
		return nil, err
	}
	with := fmt.Sprintf("'connector'='filesystem','path'='file://%s','format'='%s'", path, a.format)
	if a.query == "genuser" {
		with = fmt.Sprintf("'connector'='datagen','rows-per-second'='1000000000','number-of-rows'='%d','fields.user_id.min'='0','fields.user_id.max'='%d'",
			a.rows, flinkUsers-1)
	}
	args := append(append(a.flinkSettings(work), a.settings...), "--", "CREATE TABLE src ("+q[0]+") WITH ("+with+")")
	return append(args, "CREATE TABLE snk ("+q[1]+") WITH ('connector'='"+sink+"')", "INSERT INTO snk "+q[2]), nil
}

// inParts copies a file into a folder of so many, cut between lines: Flink reads a local
// file by one subtask, however large it is, and would use half of the processors. A folder
// stays as it is; it should have files for all subtasks.
func inParts(path, dir string, parts int) (string, error) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return path, err
	}
	from, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer from.Close()
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	r := bufio.NewReader(from)
	for part := range parts {
		size := info.Size() / int64(parts)
		if part == parts-1 {
			size = info.Size() // the rest, however long
		}
		if err := copyLines(filepath.Join(dir, strconv.Itoa(part)), r, size); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// copyLines writes so many bytes, and on to the end of the line, to a new file.
func copyLines(to string, r *bufio.Reader, size int64) error {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, r, size)
	if err == nil {
		var line []byte
		line, err = r.ReadBytes('\n')
		_, errWrite := f.Write(line)
		err = errors.Join(err, errWrite)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// flinkParallelism is that of the jobs, and the slots of the cluster.
const flinkParallelism = 2

// flinkSettings are those of Flink.
func (a flinkAsk) flinkSettings(work string) []string {
	s := []string{
		fmt.Sprint("parallelism.default=", flinkParallelism),
		fmt.Sprint("taskmanager.numberOfTaskSlots=", flinkParallelism),
		"execution.checkpointing.interval=1s",
		"execution.checkpointing.mode=EXACTLY_ONCE",
		"execution.checkpointing.storage=filesystem",
		"execution.checkpointing.dir=file://" + filepath.Join(work, "checkpoints"),
		"execution.checkpointing.incremental=true",
		"state.backend.type=" + a.backend,
		"state.backend.rocksdb.use-bloom-filter=true", // an eighth less time where keys are new
		"pipeline.object-reuse=true",
		"io.tmp.dirs=" + work,
		"taskmanager.memory.managed.size=2g",
		"taskmanager.memory.network.min=256m",
		"taskmanager.memory.network.max=256m",
	}
	if a.miniBatch {
		s = append(s, "table.exec.mini-batch.enabled=true", "table.exec.mini-batch.allow-latency=200ms", "table.exec.mini-batch.size=50000",
			"table.optimizer.agg-phase-strategy=TWO_PHASE")
	}
	return s
}

// flinkJVM are the arguments of the JVM. The heap is as large as the counts of a million
// users need, and larger gave nothing; the parallel collector takes a fifth less time for
// them than the JVM's default, and the same for the other queries.
func flinkJVM(work string) []string {
	args := []string{
		"-Xms4g", "-Xmx4g", "-XX:+UseParallelGC",
		"-Djava.io.tmpdir=" + work,
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
	}
	// What Flink's own scripts open of Java 17 for it.
	for _, p := range []string{"lang", "lang.reflect", "net", "io", "nio", "text", "time", "util", "util.concurrent", "util.concurrent.atomic", "util.concurrent.locks"} {
		args = append(args, "--add-opens=java.base/java."+p+"=ALL-UNNAMED")
	}
	return args
}

// flinkBench runs one query on Flink by itself.
type flinkBench struct {
	ask   flinkAsk
	check bool
}

func (b *flinkBench) flags(f *flag.FlagSet) {
	names := make([]string, 0, len(flinkQueries()))
	for name := range flinkQueries() {
		names = append(names, name)
	}
	slices.Sort(names)
	f.StringVar(&b.ask.query, "query", "behavior", strings.Join(names, ", "))
	f.StringVar(&b.ask.path, "path", "", "a file or a folder of files")
	f.StringVar(&b.ask.format, "format", "json", "json or csv")
	f.StringVar(&b.ask.backend, "backend", "hashmap", "hashmap or rocksdb")
	f.BoolVar(&b.ask.miniBatch, "mini-batch", false, "mini-batches and aggregation in two phases")
	f.IntVar(&b.ask.rows, "rows", 10_000_000, "rows of genuser")
	f.BoolVar(&b.check, "answers", false, "print the counts of behavior or user, sorted by key, and measure nothing")
	list := func(to *[]string) func(string) error {
		return func(s string) error { *to = append(*to, s); return nil }
	}
	f.Func("set", "a further setting of Flink's, KEY=VALUE; may be repeated", list(&b.ask.settings))
	f.Func("java", "a further argument of the JVM; may be repeated", list(&b.ask.jvm))
}

func (b *flinkBench) run(ctx context.Context, c common) (any, string, error) {
	f, err := openFlink(ctx, c.dir)
	if err != nil {
		return nil, "", err
	}
	if b.check {
		counts, err := f.answers(ctx, b.ask)
		if err != nil {
			return nil, "", err
		}
		lines := make([]string, 0, len(counts))
		for k, n := range counts {
			lines = append(lines, fmt.Sprintf("%s %d\n", k, n))
		}
		slices.Sort(lines)
		return counts, strings.Join(lines, ""), nil
	}
	r, err := f.run(ctx, b.ask)
	if err != nil {
		return nil, "", err
	}
	return r, "| query | rows, s | job, s | process, s | CPU, s | peak, MiB |\n|---|---|---|---|---|---|\n" +
		fmt.Sprintf("| %s | %.2f | %.2f | %.2f | %.1f | %.0f |\n", b.ask.query, r.Seconds, r.Job, r.Wall, r.CPU, mebibytes(r.Peak)), nil
}
