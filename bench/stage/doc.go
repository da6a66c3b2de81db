// Package stage holds benchmarks of the stages that a row passes, one by one: Read, Scan and
// Parse (bytes become columns), Filter, Project, Probe (the local aggregate), Hash, Partition,
// Encode, Send, Decode (the way to another task), Merge (the global aggregate), Keep (the
// result) and Sink; and Chain, several of them as a task runs them. The rows are those of
// bench: users, items, categories, behaviours, the same ones each time.
//
//	make bench-stages                     each once, as a table
//	make bench-compare BASE=main          a commit beside what lies here
//
// Each reports the nanoseconds of processor time and the allocations of a row; where bytes are
// read or made, also how many a row has and how many go by in a second of that time. ../NOTES.md
// says what is in a number.
//
// All go through what the packages export, and take operators out of plans of SQL, so that the
// same files measure another commit. An operator is given batches that are its own, as a source
// would; writing them is not timed.
//
// TestStages runs each stage once, over fewer rows and keys, and checks what comes out.
package stage
