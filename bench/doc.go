// Command bench measures Weir as its users get it: the binary, real processes, a real
// NATS server. What is compared runs alternately in one run, so that a machine that is
// slower for a minute is slower for both; ratios are of medians.
//
//	bench [speed]     Weir beside loops written by hand and, with -flink, beside Flink
//	bench queries     every kind of query: rows per second, allocations per row
//	bench channel     frames through a channel beside plain publish and subscribe
//	bench exchange    GROUP BY of a million keys in one worker and in two
//	bench latency     from source to result at parts of the peak rate
//	bench recovery    from kill -9 of a worker to a job that has caught up
//	bench trickle     how long checkpoints take in front of a slow sink
//	bench channels    the five above, one after the other
//	bench delta       writing what changed, in nanoseconds per entry
//	bench growth      the cost of a row by the keys in memory, beside a loop
//	bench cut         how long checkpoints stop the loops of tasks
//	bench upload      bytes stored beside bytes changed
//	bench idle        what a job takes that has nothing to do
//	bench memory      bytes per key
//	bench throughput  rows per second with checkpoints and without
//	bench spill       more keys than fit into memory
//	bench restore     from objects to the state of tasks
//	bench state       the nine above, one after the other
//	bench flink       one query on Flink by itself, where Java and Maven are
//
// Each takes -json FILE, and -help says what else. NOTES.md says what the figures mean.
//
// # Speed
//
//	generate.go ──▶ rows-N.json, rows-N.csv (kept in -dir) ──hard links──▶ a folder of K copies
//	          └──▶ answers
//	limit*.go       loops: scan or validate, one goroutine or two          ─┐
//	speedrun.go     weir up, one worker or two; read and write alone        ├─▶ rounds ─▶ targets, tables
//	speedflink.go   Flink                                                  ─┘
//
// speedwork.go has the table of works, each with who is compared and what is to be reached.
// Rows are a pure function of how many there are; so are the answers, which every run is
// checked against outside its time. What is compared in a work runs once in each round, in an
// order that turns.
//
// # Queries
//
// The file of JSON lines is counted by behaviour by a loop in one goroutine, then by weir run with
// a checkpoint every second. For each query of queries.go it prints rows per second at
// parallelism 1 and 2, every answer checked against the generator, and the allocations per
// row of its tasks (allocs.go); last, how long a script of 50 lines takes to plan.
//
// # Processes
//
// bench starts itself for what the product does not have: a NATS server by itself
// (bench nats), the two ends of a channel (bench end), and a worker that is the product's,
// with tables of its own (bench worker, worker.go): "stamped" makes rows by the clock and
// writes on each when it was due, "observed" sees how old rows are when they come out,
// "slow_N" takes N rows per second; "moving_KEYS_WINDOW_ORDER" makes each of so many keys once
// and then those of a window that moves on every second (moving.go), "gaps" sees how long apart
// batches come. All processes run on one machine and so go by one clock.
package main
