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
//	    32 MiB; a CSV file with a quote character anywhere is one split, since a line
//	    feed may then stand inside a field. Generated rows form 128 splits, see datagen.
//	    The subtasks look at different moments and go by what the first one found.
//	S2  A record starts at the file's start and behind every line feed that ends one,
//	    and belongs to the split in which it starts. So every record is read exactly
//	    once, at any split size and any parallelism.
//	S3  The state is one item per split, finished ones included, with the file's size
//	    and time of modification. Restored, unfinished splits are dealt out again to any
//	    number of subtasks. A split goes on only in a file that has not changed since; a file
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
//	BOOLEAN        true, false
//	INT, BIGINT    whole numbers in range, exactly: 12, 1.0, 1e3; not 12.5, not "12"
//	DOUBLE         numbers; beyond the largest is an error, too small for a double is 0
//	DECIMAL(p,s)   numbers that fit exactly
//	STRING         texts of valid UTF-8; half a surrogate pair is an error
//	TIMESTAMP_LTZ  texts in ISO 8601: 2017-11-25T01:00:00.5Z, a blank for the T, an offset
//	               for the Z (UTC without), seconds optional; rounded to the type's precision
//
// # CSV
//
// RFC 4180, with LF or CR LF, the options csv.delimiter, csv.null and csv.header;
// a byte order mark at the start is passed over, and so are lines without any text,
// but in a table of one column, where they are records with an empty field. Each record
// has as many fields as the table has columns. An unquoted field that equals csv.null (by
// default, an empty one) is NULL, a quoted one never is. A line end within quotes stays
// as it is, nothing is trimmed. Values are as in JSON, and in addition leading zeros
// and a plus sign are fine, BOOLEAN is true, false, t or f in any case, and DOUBLE knows NaN and
// ±Infinity. A header must name the table's columns in their order.
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
