package job

import "weir/checkpoint"

// A FieldError says which fields of a request are wrong, named as in its JSON or its
// query. It reads as, and is, Err.
type FieldError struct {
	Problems []checkpoint.Problem // a Message that is empty: Err's
	Err      error
}

// Error gives that of Err.
func (e *FieldError) Error() string { return e.Err.Error() }

// Unwrap gives Err.
func (e *FieldError) Unwrap() error { return e.Err }

// inField says that err, unless it is nil, is about a field.
func inField(name string, err error) error {
	if err == nil {
		return nil
	}
	return &FieldError{Problems: []checkpoint.Problem{{Field: name}}, Err: err}
}
