// Package sink holds the connectors that a query can write to: filesystem (CSV and
// JSON files) and blackhole (which counts and forgets). Open picks one.
//
// The filesystem sink is exactly-once. The rows between two barriers are a segment; a
// segment becomes a file that readers see only after the checkpoint that contains it
// is complete.
//
//	Process ──▶ .weir-JOB-OPERATOR-SUBTASK-open-ATTEMPT          being written
//	Snapshot ─▶ .weir-JOB-OPERATOR-SUBTASK-BARRIER-ATTEMPT       sealed: whole, named in the snapshot
//	Seal                                                         flushed to disk, beside the rows that follow
//	Commit ───▶ part-JOB-OPERATOR-SUBTASK-BARRIER.csv            published: linked if absent
//
// # Invariants
//
//	K1  A published file is complete, durable, and never changes. Its name is its
//	    segment's identity: the writer's job, operator, subtask and barrier, for ever,
//	    whoever restores it. (In names a job goes by its first 12 digits.)
//	K2  A segment is published after the decision for a checkpoint at or after its
//	    barrier (I10), in barrier order, and once: a name that is taken is the same segment
//	    if size and checksum agree, and an error otherwise.
//	K3  The snapshot holds every segment not yet published and confirmed. Restored, the
//	    segments are dealt out to any number of subtasks. A marker, an empty hidden file
//	    (….-done-BARRIER), notes that a segment has been published, so that readers may
//	    move published files away. It stays until the sealed file has gone; the last one of
//	    a writer stays for good, and speaks for the earlier ones whose files have gone.
//	K4  What a snapshot may name is not deleted: a sealed segment of an aborted attempt
//	    stays for a week. Files that were only begun, by an older attempt of the same job
//	    and operator, are removed when subtask 0 opens, and so are the sealed ones of
//	    segments that were given up, which no sink is handed any more; what was published
//	    of these stays, with its marker.
//	K5  Barriers without rows leave no file. Closing throws away what was only begun.
//	K6  Files are created below the roots that the worker allows, links resolved.
//
// The target folder must be the same one for all workers, on a file system with hard links.
//
// # Formats
//
// CSV is RFC 4180 with LF and the options csv.delimiter, csv.header (in each file) and
// csv.null; by default NULL is empty and an empty text is "". (So a NULL in a table of
// one column is an empty line, which a source of one column reads as a row.) JSON is one
// object per line, keys in the table's order, NULL as null.
//
//	BOOLEAN        true, false
//	INT, BIGINT    decimal digits
//	DOUBLE         the shortest digits that read back the same; NaN, Infinity and -Infinity, in JSON in quotes
//	DECIMAL(p,s)   exactly, with s digits behind the point
//	BYTES          base64
//	DATE           2017-11-25
//	TIMESTAMP      2017-11-25T01:00:00, the fraction without trailing zeros
//	TIMESTAMP_LTZ  2017-11-25T01:00:00Z, the same, in UTC
//	INTERVAL       1 day 02:03:04.5, or 1 year 2 mons, as PostgreSQL prints it
//
// In JSON all but BOOLEAN and numbers are texts. The source reads files as the rows that
// were written, NULL and "" apart.
//
// # Goroutines
//
// None; a sink is called by its task's loop. What Seal returns is the uploader's: it touches the
// sealed files, which are kept open until they are published, and the folder, nothing else.
//
// # Failures
//
// Every error ends the attempt, which then begins again from its base: what it wrote
// and nobody committed is never seen. A segment that no marker covers and of which
// neither file exists is an error that names it; where it is another job's, the sink
// does not open: a job that starts from another one's snapshot writes to that one's folder.
//
// # Testing
//
// Golden files pin names, state and formats; a simulation kills the sink between any
// two of its steps, restores it at another parallelism and compares what was published
// with the rows of the checkpoints that were completed.
package sink
