// Package op holds the operators that transform rows within a task, one per file: filter,
// project, expand, local_aggregate, global_aggregate, result and rejects. Open is their
// list. What may be called when is in package exec (Operator).
//
//	source ▸ filter ▸ project ▸ local_aggregate ══hash(keys)══▶ global_aggregate ▸ project ▸ result
//	                            key | partial sums               key → accumulators         key → row
//	                            (bounded table, no state)        (keyed state)              (keyed state)
//
// An aggregate runs in two phases. The local one shrinks the stream in the source's
// task; it keeps nothing over a flush, and passes rows through while their keys hardly
// repeat. The global one owns each group. Both use the accumulators of aggregate.go,
// which lie in 64-bit words; the texts of MIN and MAX and the sketches of
// APPROX_COUNT_DISTINCT are byte strings, in the global phase parts of a group's blob.
//
// DISTINCT aggregates have one phase, and a second table: the values of an argument in each
// group (values.go). Rows that are taken back (Changing) are aggregated in one phase too:
// every group counts its rows and goes with the last one; sums and counts subtract; MIN and
// MAX, like DISTINCT, count each value, and find the next one in an ordered index in memory.
// expand emits each row once for every grouping set, whose number is one of the keys.
//
// Where on_row_error is skip or keep, filters and projections take the rows that fail out of
// their batch (sieve.go), reject them and go on; rejects keeps what all chains reject.
//
// Invariants
//
//	O1 Words of accumulators, partial columns and final values depend on the rows
//	   alone, never on batches or parallelism; only a DOUBLE sum's last bit may differ.
//	O2 A partial result is emitted by Flush at the latest; it is never state (I11).
//	O3 The global aggregate emits, per batch, at most one change of each group: +I for
//	   a new one, -U and +U where its value changed, -D for one whose rows are all taken
//	   back. With Final, each group that is left once at End. Groups that exist without a
//	   row (Always, and the one without GROUP BY) appear at End where they are not there.
//	O4 An overflow names its aggregate, in both phases, also where no change is put out.
//	O5 NULL is a group of its own; -0 groups with 0 and shows as 0, all NaNs are one group.
//	   MIN and MAX take -0 for less than 0; over rows that are taken back it is 0.
//	O6 A result's version grows with every change and over attempts; a reader that is
//	   too far behind gets the whole table, never a gap. Changes that nobody has asked
//	   for in a long time are not kept, and where the rows are an aggregate's groups, which
//	   the result then reads there, it does not put them out.
//	O7 A row is rejected as a whole and once per operator, by its first expression that
//	   fails; a -U or -D that fails is dropped, for the row it takes back was rejected.
//	O8 Which rejected rows are kept, and their order, depend on the rows alone. Behind an
//	   aggregate a row is a change of the result: how many there are depends on batches.
//
// # Goroutines
//
// None. Every operator is called by its task's loop only.
//
// # Failures
//
// exec.RowError from filters and projections, exec.ValueError from aggregates: both
// are faults of the input. Only the former can be rejected: a sum that leaves its type is
// no single row's fault and fails the job whatever on_row_error says. A row that is taken
// back before it was there breaks what an exchange promises: an error of the operator.
//
// # Testing
//
// exectest attacks each operator: one row at a time, all at once, a snapshot and a
// restore after every batch, other parallelisms; all must give the same answer. Every
// aggregate, in each way that it may run, is compared with its recomputation from the
// rows that random changes leave.
package op
