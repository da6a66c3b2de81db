package exec

import (
	"context"
	"fmt"

	"weir"
)

// A Query asks a result operator for rows or, with Changes, for what changed since a
// version.
type Query struct {
	// Limit is the largest number of rows; 0: no limit.
	Limit int `json:"limit,omitempty"`
	// Bytes bounds the rows' sizes together, but one row always fits; 0: no limit.
	Bytes int `json:"bytes,omitempty"`
	// OrderBy orders by shown columns, ties by the row's key. NULLs are last ascending,
	// first descending. Empty: in an order of the keys' hashes that is the same in every
	// table, in which a page costs about what it shows; an ordered one reads all rows.
	OrderBy []Order `json:"order_by,omitempty"`
	// After skips rows whose Sort is not greater: the Sort of the last row of the page before.
	After []byte `json:"after,omitempty"`
	// Changes asks for the changes after version Since. Where the log does not reach
	// back to it the answer is the whole table, with Full set.
	Changes bool   `json:"changes,omitempty"`
	Since   uint64 `json:"since,omitempty"`
}

// An Order is one column of an order.
type Order struct {
	Column string `json:"column"`
	Desc   bool   `json:"desc,omitempty"`
}

// A Page is a subtask's answer to a Query.
type Page struct {
	// Rows are in ascending order of Sort; changes are in the order they happened.
	Rows []Row `json:"rows"`
	// Total is the number of rows in the subtask's part of the result.
	Total int64 `json:"total"`
	// Version is the number of the last change. It grows over the attempts of a job, so
	// a version of another attempt is answered with Full.
	Version uint64 `json:"version"`
	// Full: the rows are the whole table (or its page), not changes.
	Full bool `json:"full"`
	// More: Limit or Bytes left rows out.
	More bool `json:"more,omitempty"`
	// Counts are, of rejected rows, how many there are of each table, by its name.
	Counts []Count `json:"counts,omitempty"`
}

// A Count is the number of rows that were rejected of a table.
type Count struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
}

// A Row is one row of a result.
type Row struct {
	// Op is +I, -U, +U or -D; +I for rows of the table.
	Op string `json:"op"`
	// JSON is the object of the shown columns, in their order.
	JSON []byte `json:"json"`
	// Sort orders rows of all subtasks by comparing bytes; empty for changes.
	Sort []byte `json:"sort,omitempty"`
}

// Size is the most that the row takes in a message: there Sort is in base 64, and
// encoding/json escapes some characters, U+2028 and U+2029 among them.
func (r *Row) Size() int {
	size := len(`{"op":"+I","row":,"sort":""},`) + len(r.JSON) + (len(r.Sort)+2)/3*4
	for _, c := range r.JSON {
		switch c {
		case '<', '>', '&':
			size += len(`\u003c`) - 1
		case "\u2028"[0]:
			size += len(`\u2028`) - len("\u2028")
		}
	}
	return size
}

// A Reader is an operator whose state can be read. Read is called on the task's loop.
type Reader interface {
	Read(q Query) (Page, error)
}

// Query reads the task's result operator, on its loop. It is weir.ErrNotFound when the
// task has none, and weir.ErrConflict when the task is not running or too busy.
func (t *Task) Query(ctx context.Context, q Query) (Page, error) {
	if t.reader() == nil {
		return Page{}, fmt.Errorf("%w: task %v keeps no result", weir.ErrNotFound, t.id)
	}
	ask := question{query: q, replyC: make(chan reply, 1)}
	if err := t.mail.ask(ask); err != nil {
		return Page{}, fmt.Errorf("task %v: %w", t.id, err)
	}
	select {
	case r := <-ask.replyC:
		return r.page, r.err
	case <-ctx.Done():
		return Page{}, ctx.Err()
	case <-t.doneC:
		return Page{}, fmt.Errorf("%w: task %v has ended", weir.ErrConflict, t.id)
	}
}
