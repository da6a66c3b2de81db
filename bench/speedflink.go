package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// The names by which contenders are compared with Flink; one with mini-batches says so behind it.
const (
	flinkHeap  = "Flink, heap"
	flinkRocks = "Flink, RocksDB"
	miniBatch  = ", mini-batch"
)

// A peer is Flink with what it has been measured at: works that ask it the same share its runs.
type peer struct {
	flink   *flink
	idle    float64 // processor seconds of a process with an empty file
	runs    map[string][]sample
	checked map[string]bool
}

// openPeer makes Flink ready, if it is asked for.
func (b *speedBench) openPeer(ctx context.Context) error {
	if !b.withFlink {
		return nil
	}
	f, err := openFlink(ctx, b.dir)
	if err != nil {
		return err
	}
	empty, err := f.run(ctx, flinkAsk{query: "empty", format: "json", backend: "hashmap"})
	if err != nil {
		return err
	}
	b.peer = &peer{flink: f, idle: empty.CPU, runs: map[string][]sample{}, checked: map[string]bool{}}
	return nil
}

// peerContenders are Flink with each setting that a work is compared with; the best one counts.
func (b *speedBench) peerContenders(w work) (all []contender) {
	if b.peer == nil || w.flink == "" {
		return nil
	}
	grouped := w.query == "behavior" || w.query == "user"
	for _, backend := range []struct{ name, option string }{{flinkHeap, "hashmap"}, {flinkRocks, "rocksdb"}} {
		if backend.name == flinkRocks && !slices.ContainsFunc(w.wanted, func(t target) bool { return t.beside == flinkRocks }) {
			continue
		}
		for _, mini := range []bool{false, true} {
			if mini && !grouped {
				continue
			}
			name := backend.name
			if mini {
				name += miniBatch
			}
			ask := flinkAsk{query: w.flink, format: w.format, backend: backend.option, miniBatch: mini, rows: b.rows}
			round := 0
			all = append(all, contender{name: name, rounds: b.flinkRuns, run: func(ctx context.Context) (sample, error) {
				round++
				return b.peerRun(ctx, ask, round)
			}})
		}
	}
	return all
}

// peerRun is the run of a round, which another work may have had.
func (b *speedBench) peerRun(ctx context.Context, ask flinkAsk, round int) (s sample, err error) {
	key := fmt.Sprintf("%+v", ask)
	if had := b.peer.runs[key]; len(had) >= round {
		return had[round-1], nil
	}
	if ask.format != "" {
		if ask.path, err = generate(b.dir, ask.format, ask.rows); err == nil {
			err = b.checkPeer(ctx, ask)
		}
		if err == nil {
			err = cache(ask.path)
		}
		if err != nil {
			return s, err
		}
	}
	r, err := b.peer.flink.run(ctx, ask)
	if err != nil {
		return s, err
	}
	s = sample{Rows: int64(ask.rows), Seconds: r.Seconds, CPU: max(r.CPU-b.peer.idle, 0), Memory: r.Peak}
	b.peer.runs[key] = append(b.peer.runs[key], s)
	return s, nil
}

// checkPeer has Flink answer a query of a small file once with each setting: what it is measured at
// goes nowhere and cannot be looked at.
func (b *speedBench) checkPeer(ctx context.Context, ask flinkAsk) error {
	if ask.query != "behavior" && ask.query != "user" {
		return nil
	}
	key := fmt.Sprintf("%+v", ask)
	if b.peer.checked[key] {
		return nil
	}
	b.peer.checked[key] = true
	const rows = 20_000
	var err error
	if ask.path, err = generate(b.dir, ask.format, rows); err != nil {
		return err
	}
	got, err := b.peer.flink.answers(ctx, ask)
	if err != nil {
		return err
	}
	want := answersOf(rows)
	counts := want.behaviors
	if ask.query == "user" {
		counts = map[string]int64{}
		for user, n := range want.users {
			if n > 0 {
				counts[strconv.Itoa(user)] = n
			}
		}
	}
	if !maps.Equal(got, counts) {
		return fmt.Errorf("flink's answers to %q are not the generator's", ask.query)
	}
	return nil
}
