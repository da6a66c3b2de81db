package exec

import (
	"errors"
	"fmt"
	"strings"

	"weir"
)

// The reasons in a task's Failure.
const (
	ReasonRow      = "row_error" // a fault of the input: a restart does not help
	ReasonPanic    = "panic"     // a broken invariant; the log has the stack
	ReasonOperator = "operator"  // an operator or connector failed
	ReasonChannel  = "channel"   // a channel broke: its peer is gone or anew, or a frame cannot travel any more
	ReasonRestore  = "restore"   // a snapshot could not be loaded
	ReasonCommit   = "commit"    // a sink could not make its segments visible
	ReasonUpload   = "upload"    // a snapshot could not be stored
	ReasonSpill    = "spill"     // the disk for what does not fit in memory failed
)

// A ValueError is a value that a computation over many rows cannot hold, such as a
// sum that leaves its type. Like a RowError it is a fault of the input.
type ValueError struct {
	Column string // the aggregate or column, by its text: "sum(price)"
	Reason string
}

// Error gives "column sum(price): reason".
func (e *ValueError) Error() string { return "column " + e.Column + ": " + e.Reason }

// A TaskError is why a task ended: what Run returns but for the end of its context.
type TaskError struct {
	Failure weir.Failure
	// Restart: another attempt may fare better.
	Restart bool
	err     error
}

// Error gives the failure's message.
func (e *TaskError) Error() string { return e.Failure.Message }

// Unwrap returns the cause.
func (e *TaskError) Unwrap() error { return e.err }

// opError marks the operator in which an error arose; the innermost wins.
type opError struct {
	setup *Setup
	err   error
}

func (e *opError) Error() string { return e.setup.Operator.Name + ": " + e.err.Error() }
func (e *opError) Unwrap() error { return e.err }

func inOperator(n *node, err error) error {
	var marked *opError
	if err == nil || errors.As(err, &marked) {
		return err
	}
	return &opError{&n.setup, err}
}

// reasonError carries a reason of the closed list.
type reasonError struct {
	reason string
	err    error
}

func (e *reasonError) Error() string { return e.err.Error() }
func (e *reasonError) Unwrap() error { return e.err }

// Message gives an error's text without the names of the sentinels, which are for
// programs.
func Message(err error) string {
	text := err.Error()
	for _, s := range []error{weir.ErrInvalid, weir.ErrNotFound, weir.ErrBroken} {
		text = strings.TrimPrefix(strings.ReplaceAll(text, ": "+s.Error()+": ", ": "), s.Error()+": ")
	}
	return text
}

// isRowError reports whether the input is at fault, so that a restart cannot help.
func isRowError(err error) bool {
	var row *RowError
	var value *ValueError
	return errors.As(err, &row) || errors.As(err, &value)
}

// taskError turns what ended a task's loop into what its Run returns.
func (t *Task) taskError(err error) *TaskError {
	subtask := t.id.Subtask
	locate(err)
	f := weir.Failure{Reason: ReasonOperator, Subtask: &subtask, Worker: t.worker, Message: Message(err)}
	var marked *opError
	if errors.As(err, &marked) {
		f.Operator = marked.setup.Operator.ID
	}
	var reason *reasonError
	if errors.As(err, &reason) {
		f.Reason = reason.reason
	}
	if errors.Is(err, weir.ErrBroken) {
		f.Reason = ReasonChannel
	}
	if isRowError(err) {
		f.Reason = ReasonRow
	}
	return &TaskError{Failure: f, Restart: !isRowError(err) && !refused(err), err: fmt.Errorf("task %v: %w", t.id, err)}
}
