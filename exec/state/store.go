// Package state keeps the keyed state of one operator's subtask.
package state

// A Store is the keyed state of one operator's subtask.
type Store struct{}
