// Package state keeps the keyed state of one operator's subtask: tables in memory, what
// each generation changed in them as a run, the chain of runs that a snapshot names, and the
// restore.
//
//	operator ──UpsertRows, Words──▶ Table ─┐                     ┌ base: handles that a checkpoint holds
//	                                       ├─ Store ──Cut──▶ Run ─▶ Chain ──Snapshot──▶ handles, pieces to store
//	operator ──Upsert, SetBlob────▶ Table ─┘    ▲                └ runs since            │
//	                                            └──────────────Restore──────────────────┘
//
// A generation is the time between two cuts. A table maps an encoded key (batch.EncodeKey)
// to a fixed number of 64-bit words and, if its layout says so, a byte string. An entry has
// a slot, a small number that stays its own until it is deleted. Slots lie in chunks of 512:
//
//	index    segments of [tag|slot] [tag|slot] …      8 bytes each, at most 4/5 full
//	chunk    number, [blob], words…                   one record per slot, where keys are numbers
//	         hash, key (16 or 24 bytes), [blob], words…      otherwise
//	         bytes: keys that do not fit, blobs
//	         dirty, born, live: a bit for each slot
//
// So a count of a BIGINT is 16 bytes beside its place in the index. A segment of the index
// that is full becomes two, so that growing takes as long as rewriting one (0.1 ms).
//
// A run is what a generation changed, sorted by hash, in columns: each is packed to as many
// bytes as its block needs. A snapshot is a whole run and deltas, runs that are laid over it.
// Chain decides, without doing anything, what a snapshot names, what is stored for it, and which
// runs are merged. Merging reads runs and writes one; it never looks at a table, so a new
// whole run costs the loop nothing. Who makes a run rests every 2 ms, so that loops that share the processors with
// it have their turn.
//
// Invariants
//
//	S1  A cut shows its generation as it ended, whatever is written later, while the cut is
//	    open; any number of cuts may be open.
//	S2  A cut costs the loop nothing that grows with the state or with what changed. While it is
//	    open, the first write of a generation into a chunk that it shows copies the chunk
//	    (16 KiB and less for numbers); a chunk that it does not show is never copied.
//	S3  An entry belongs to the key group of its hash; a store holds entries of its
//	    own key groups only.
//	S4  Laid over each other in order, the runs of all generations are the store. A cut that
//	    was taken is a run of the chain, whatever becomes of its checkpoint.
//	S5  A snapshot names what the base names, what merging that gave, and what was stored
//	    for it itself: never an object of a checkpoint that may still fail.
//	S6  A run keeps deletions, unless nothing can come to lie below it: a whole run of the
//	    chain's own handles.
//	S7  A restore takes from each handle what lies in both its key groups and the store's.
//	    Every byte of an object is covered by the handle's checksum and every block by its
//	    own; of a large object that holds more key groups the blocks of those that are needed
//	    are read alone, by its directory. Anything missing, damaged or twice there is an error
//	    that names the object; it never yields a smaller state.
//	S8  The format of pieces is frozen by golden bytes; older versions are read, and written
//	    anew with the next cut; a newer one is refused by number.
//
// # What does not fit
//
//	task's loop, between two batches: Relax ──▶ over the share? ─┬─ clean entries, oldest first ──▶ SST ──▶ Disk
//	                                                             └─ none: ErrDirty ──▶ the loop cuts, the run is awaited
//	Find, Upsert ──▶ memory ── not there ──▶ filter, graves ──▶ Disk ──▶ memory, changed
//
//	S9   Only an entry that no open cut and no later run has still to show is spilled: what is
//	     on disk is in a run already. So the disk is scratch: it is empty when it is
//	     opened, it has no log, and nothing is restored from it.
//	S10  Where memory and disk both have a key, memory's counts. What is deleted in memory of
//	     which disk has a version is a grave, until the next SST carries its deletion.
//	S11  An entry that comes back from disk counts as changed in its generation, and not as
//	     born in it.
//	S12  Nothing is spilled within a batch: slots hold from one Relax to the next. A table
//	     whose slots are used beyond that is pinned.
//	S13  A disk that fails ends the tasks that read or spill, each with an error that says
//	     so and names the folder (DiskError); never the process, and never with a value that
//	     is missing. Who comes later gets another database.
//	S14  The stores of a worker share a budget by what they have: over the limit each may keep the
//	     same part of its size. An eighth is kept for runs that storage does not have yet.
//	S15  Runs lie on the store's shelf, in memory up to that eighth of all stores together, in
//	     files beside the database otherwise. A file stays while a chain, or who stores or
//	     merges, names it. Where no checkpoint takes them, the newest of about the same size
//	     are merged (Chain.Fold).
//	S16  A restore spills while it loads: what it loads is in the snapshot. What is to be written
//	     anew is cut on the way, and these runs lie below that of the first cut (Runs).
//
// A filter in memory tells, of nearly every key that is not on disk, that it is not: 1.6 to 3 bytes
// for each that is. Filters grow to half of the store's share, and are halved where that has become
// much smaller. Pebble has filters for all levels but the last one, where nearly all keys
// lie, and a table keeps an iterator over them until it spills again, or the store is cut. A filter
// never forgets a key; where many have left the disk, or there is room for a better one, one is made
// anew beside it, a thousand keys in each Relax.
//
// The index also gives the entries in an order that is the same in every table and at
// every size (Ranked), from any place on: whoever reads a large table in small parts
// pays for the parts alone.
//
// # Goroutines
//
// A restore reads and decodes pieces ahead, eight at once and 32 MiB at most, in goroutines that
// end before it does; it lays them on its caller's. What writes to the disk's database does so
// in a goroutine of its own, which may stay where the database has failed. Else none is started.
// One goroutine, the task's loop, owns the store and its tables. A cut may be made a run, and
// released, by another one; the only things that both sides touch are the list of open cuts and
// the slabs. A Chain belongs to whoever guards it. A Merge is self-contained.
//
// # Failures
//
// Restore and Merge return weir.ErrNotFound for an object that is not there and
// weir.ErrInvalid for one that is damaged or fits another layout; a store that was restored in part is
// useless. Table panics when a restored table has another layout than the operator declares.
//
// # Testing
//
// A model test (rapid) lets a job live, of one to four tasks with a store and a chain each:
// random upserts, deletions, ranges, spills under small budgets, barriers whose runs are
// written late, checkpoints that complete, fail or are given up, savepoints, merges,
// crashes, rescales, a disk that fails. What is read, and what is restored of any checkpoint,
// must be what a plain map holds: ten thousand steps, a million with WEIR_LONG, of which each
// kind must have happened. Every operation on the disk's files is made to fail, once or for good,
// every one is a crash, and bytes of what was spilled are damaged: errors name the folder, and no
// value is wrong. Golden bytes pin the format; every single damaged byte of a small snapshot must
// be noticed; FuzzRestore reads anything. Restores of random ranges count what they read.
package state
