// Package source holds the connectors that a table can be read from: filesystem (CSV
// and JSON files), datagen (rows made out of their numbers) and values (rows that the
// query writes out; the first subtask emits them). Open picks one.
//
//	files ──list──▶ splits of 32 MiB ──share i mod P──▶ subtask i
//	                                                      │ reader: a window of whole records
//	                                                      ▼ decoder: text → column vectors
//	                                    batch ◀── rows, with the offset of each
//
// # Invariants
//
//	S1  Splits are a function of the input alone: files in ascending order, cut every
//	    32 MiB. A cut of a CSV file holds only if no quote character stands in front of
//	    the first line that starts at or behind it, since a line feed may else stand inside
//	    a field: the split in front of the first cut that does not hold goes on to the end of
//	    the file, and those behind it hold nothing. Nobody asks before it matters: who comes
//	    to a cut that others read up to looks for quotes, a few blocks per call of Next, in
//	    what it does not know yet; its own bytes it looks at when it reads them. Generated
//	    rows form 128 splits, see datagen. The subtasks list the files at different
//	    moments and go by what the first one found.
//	S2  A record starts at the file's start and behind every line feed that ends one,
//	    and belongs to the split in which it starts. So every record is read exactly
//	    once, at any split size and any parallelism.
//	S3  The state is one item per split, finished ones included, with the file's size
//	    and time of modification. Restored, unfinished splits are dealt out again to any
//	    number of subtasks. An item says, too, how far its file is known to be free of quotes,
//	    so that a restored job does not look again; that may be missing, or too little. A
//	    split goes on only in a file that has not changed since; a file
//	    that changes while it is read fails the task.
//	S4  Files are opened below the roots that the worker allows, links resolved.
//	S5  Nothing is allocated per row. A batch has at most batch.Target rows and, but for
//	    its last row, 160 KiB of text; a row has at most 512 KiB of text, a record 16 MiB.
//	S6  Row i of a generated table is a function of the seed and i.
//
// # What a path finds
//
// A file; a folder, meaning the files directly in it; or a pattern as in path/filepath.
// Folders and patterns do not find names that begin with a dot, among them the files
// that the filesystem sink has not published yet. The files have to be in place when the
// job starts: what appears later is not read.
//
// # JSON
//
// One object per line (LF or CR LF; the last line may lack it); blank lines are passed
// over, and a byte order mark at the file's start. A record must be one well-formed object,
// 512 levels deep at most, and the columns that the query reads must fit; other fields
// are looked at for their form only. A missing field and null are NULL. Where a key is
// there twice, the last one counts, and each must fit.
//
// What a value has to be is in the table below: nothing is taken for a value of another
// type, so that "7" is no number, true is not 1 and "" is neither 0 nor NULL.
//
// # CSV
//
// RFC 4180, with LF or CR LF, the options csv.delimiter, csv.null and csv.header;
// a byte order mark at the start is passed over, and so are lines without any text,
// but in a table of one column, where they are records with an empty field. Each record
// has as many fields as the table has columns. An unquoted field that equals csv.null (by
// default, an empty one) is NULL, a quoted one never is. A line end within quotes stays
// as it is, nothing is trimmed. A header must name the table's columns in their order.
//
// # Types
//
//	type           in JSON                                          in CSV, quoted or not
//	BOOLEAN        true, false                                      true, false, t, f, in any case
//	INT, BIGINT    a whole number in range, exactly: 12, 12.0,      the same, also 007 and +7; so "7" is one
//	               1e3; not 12.5, 9223372036854775808, "12"
//	DOUBLE         a number; 1e400 is an error, 1e-400 is 0;        the same, also nan, inf and infinity
//	               or "NaN", "Infinity", "-Infinity"                in any case
//	DECIMAL(p,s)   a number that fits exactly                       the same, also 007 and +7
//	STRING         a text of valid UTF-8; half a surrogate          valid UTF-8
//	               pair is an error; not 7, not true
//	BYTES          a text in base64: "aGVsbG8="                     base64
//	DATE           "2017-11-25"                                     2017-11-25
//	TIMESTAMP      "2017-11-25T01:00:00.5", no offset               2017-11-25 01:00:00.5
//	TIMESTAMP_LTZ  "2017-11-25T01:00:00.5Z", "…+01:00"; UTC         2017-11-25 01:00:00.5+01
//	               without an offset
//	INTERVAL       "1 day 02:03:04.5", "1 year 2 mons", "PT5M"      1 day 02:03:04.5
//	any            null, or no such field: NULL                     csv.null, unquoted: NULL
//
// Dates and times are read in ISO 8601 and as PostgreSQL writes them: a blank or T before the
// time, seconds or the whole time left out, any number of digits in the fraction, which is
// rounded to the type's precision as PostgreSQL does; years are 1 to 9999. What a type has
// no place for is an error: a time of day for a DATE, an offset for a TIMESTAMP.
//
// The generator makes values of all types.
//
// # Goroutines
//
// None; a source is called by its task's.
//
// # Failures
//
// A fault of a row is an *exec.RowError with file, line, offset and column; the rows in
// front of it in the same batch are not emitted. Where rejects are taken, the record goes
// there, with its bytes, and reading goes on behind it: behind its line, for JSON and for a
// CSV record whose quotes are wrong (never closed, say), else behind the CSV record as its
// quotes show it. Everything else is an error of the file, such as a header that names
// other columns, or of the table's definition, by name.
//
// # Testing
//
// Properties compare splits of any size at any parallelism, with a restore in the
// midst, to the plain lines of the files, and the scanners to encoding/json and
// encoding/csv; golden rows pin the generator; the scanners are fuzzed.
package source
