// Package state keeps the keyed state of one operator's subtask: tables in memory,
// cuts of them taken between two batches, snapshots of the cuts, and the restore.
//
//	operator ──Upsert, Words, SetBlob──▶ Table ─┐
//	                                            ├─ Store ──Cut──▶ Cut ──Write──▶ objects, handles
//	operator ──Upsert, Words, SetBlob──▶ Table ─┘    ▲                              │
//	                                                 └───────────Restore────────────┘
//
// A table maps an encoded key (batch.EncodeKey) to a fixed number of 64-bit words and,
// if its layout says so, a byte string. An entry has a slot, a small number that stays
// its own until it is deleted. Slots lie in chunks of 512:
//
//	index    [tag|slot] [tag|slot] …        open addressing, 8 bytes each, at most 2/3 full
//	chunk    hash, key (16 bytes), [blob], words…     one record per slot
//	         bytes: keys longer than 15 bytes, blobs
//
// A key of up to 15 bytes (any one number, a short string) lies in its record, so a
// probe touches the index and the record and nothing else.
//
// Invariants
//
//	S1  A cut shows the store as it was when Cut was called, whatever is written
//	    later, while the cut is open; any number of cuts may be open.
//	S2  A cut costs the loop one copy of the lists of chunks (8 bytes for 512 entries).
//	    While a cut is open the first write into a chunk after the newest cut copies the
//	    chunk; without an open cut nothing is ever copied. So n open cuts keep at most n
//	    copies of a chunk, and only of those written to between them.
//	S3  An entry belongs to the key group of its hash; a store holds entries of its
//	    own key groups only.
//	S4  A snapshot lists entries by (key group, key): its bytes follow from the content,
//	    not from the history of the table.
//	S5  A restore takes from each handle what lies in both its key groups and the
//	    store's. Every byte of an object is covered by the handle's checksum and every
//	    block by its own. Anything missing, damaged or twice there is an error that names
//	    the object; it never yields a smaller state.
//	S6  The snapshot's format and the key layout are frozen by golden bytes; another
//	    version is refused by number.
//
// The index also gives the entries in an order that is the same in every table and at
// every size (Ranked), from any place on: whoever reads a large table in small parts
// pays for the parts alone.
//
// What a cut costs, measured with 1 M entries of one word in 2,000 chunks: Cut about 6 µs;
// after it the first touch of each chunk copies 16 KiB, about 3 µs with its share of
// garbage collection, so that a loop touching all of the state pays some 7 ms in all,
// spread over its batches. Off the loop, ordering takes 30 ns and encoding 120 ns per
// entry; a restore 140 ns. Copying the slabs whole at the cut was the alternative: as many
// bytes, but at once, and for the parts that are not touched too.
//
// # Goroutines
//
// None is started. One goroutine, the task's loop, owns the store and its tables. A cut
// may be written and released by another one; the only thing that both sides touch is
// the counter of open cuts.
//
// # Failures
//
// Write returns the object store's error; what it stored before may remain, under keys
// of this checkpoint. Restore returns weir.ErrNotFound for an object that is not there and
// weir.ErrInvalid for one that is damaged or fits another layout; the store is then useless.
// Table panics when a restored table has another layout than the operator declares.
//
// # Testing
//
// A model test (rapid) runs random upserts, deletes, overlapping cuts and restores into
// one, two and three ranges against a plain map; golden bytes pin the format; every
// single damaged byte of a small snapshot must be noticed.
package state
