package transport

import (
	"encoding/json"
	"errors"
	"fmt"

	"weir"
)

// messageVersion is the version of the JSON envelope of every control message.
const messageVersion = 1

// A message is a command, a report or a heartbeat. Body is JSON, opaque here.
type message struct {
	Version int             `json:"v"`
	ID      string          `json:"id,omitempty"` // the same in every repetition
	Kind    string          `json:"kind"`
	Key     *messageKey     `json:"key,omitempty"`     // of a command; nil: it asks anew
	WaitMS  int64           `json:"wait_ms,omitempty"` // from its arrival on its sender waits so long; 0: for ever
	Object  *object         `json:"object,omitempty"`  // in the place of Body
	Part    *part           `json:"part,omitempty"`    // of a heartbeat, in the place of Body
	Body    json.RawMessage `json:"body,omitempty"`
}

// A messageKey is a weir.CommandKey; the kind is the message's.
type messageKey struct {
	Job     weir.JobID     `json:"job"`
	Attempt weir.AttemptID `json:"attempt"`
	ID      string         `json:"id,omitempty"`
}

// name is what a message is known by on its way: its key, or itself.
func (m message) name() string {
	if m.Key == nil {
		return m.ID
	}
	return fmt.Sprintf("%s %v %s %s", m.Key.Job, m.Key.Attempt, m.Kind, m.Key.ID)
}

// An answer is what comes back. Exactly one of Body, Object and Error counts.
type answer struct {
	Version int             `json:"v"`
	ID      string          `json:"id"`
	Object  *object         `json:"object,omitempty"`
	Body    json.RawMessage `json:"body,omitempty"`
	Error   *answerError    `json:"error,omitempty"`
}

// An answerError carries an error of a handler over the wire: its text, and which
// sentinel it is.
type answerError struct {
	Is      string `json:"is,omitempty"`
	Message string `json:"message"`
}

// A pong answers a ping.
type pong struct {
	Version     int    `json:"v"`
	Worker      string `json:"worker"`
	Incarnation string `json:"incarnation"`
}

// A sentinel is an error that keeps its identity, with its name on the wire.
type sentinel struct {
	name string
	err  error
}

func sentinels() []sentinel {
	return []sentinel{
		{"stale", weir.ErrStale},
		{"invalid", weir.ErrInvalid},
		{"not_found", weir.ErrNotFound},
		{"conflict", weir.ErrConflict},
	}
}

func encodeMessage(m message) ([]byte, error) {
	m.Version = messageVersion
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("%w: body of %q is not JSON: %w", weir.ErrInvalid, m.Kind, err)
	}
	return b, nil
}

func decodeMessage(b []byte) (message, error) {
	var m message
	if err := json.Unmarshal(b, &m); err != nil {
		return message{}, fmt.Errorf("%w: control message: %w", weir.ErrInvalid, err)
	}
	return m, checkVersion(m.Version)
}

func checkVersion(v int) error {
	if v != messageVersion {
		return fmt.Errorf("%w: control message of version %d, this program knows %d; run the same version of weir everywhere",
			weir.ErrInvalid, v, messageVersion)
	}
	return nil
}

// newAnswer answers message id with a handler's result.
func newAnswer(id string, body []byte, err error) answer {
	a := answer{Version: messageVersion, ID: id, Body: body}
	if err == nil && len(body) > 0 && !json.Valid(body) {
		err = fmt.Errorf("%w: the answer is not JSON", weir.ErrInvalid)
	}
	if err != nil {
		a.Body, a.Error = nil, &answerError{Message: err.Error()}
		for _, s := range sentinels() {
			if errors.Is(err, s.err) {
				a.Error.Is = s.name
				break
			}
		}
	}
	return a
}

// encode gives the bytes of an answer, whose body is JSON.
func (a answer) encode() []byte {
	b, err := json.Marshal(a)
	if err != nil {
		panic(fmt.Sprintf("transport: encode answer: %v", err))
	}
	return b
}

// decodeAnswer reads the answer to message id.
func decodeAnswer(b []byte, id string) (answer, error) {
	var a answer
	if err := json.Unmarshal(b, &a); err != nil {
		return a, fmt.Errorf("answer is not JSON: %w", err)
	}
	if err := checkVersion(a.Version); err != nil {
		return a, err
	}
	if a.ID != id {
		return a, fmt.Errorf("answer to message %q, asked %q", a.ID, id)
	}
	return a, nil
}

func (e *answerError) restore() error {
	for _, s := range sentinels() {
		if s.name == e.Is {
			return &RemoteError{Message: e.Message, is: s.err}
		}
	}
	return &RemoteError{Message: e.Message}
}

// A RemoteError is an error that a handler returned on the other side. errors.Is
// finds the sentinel it was there.
type RemoteError struct {
	Message string
	is      error
}

// Error gives the text from the other side.
func (e *RemoteError) Error() string { return e.Message }

// Unwrap gives the sentinel, or nil.
func (e *RemoteError) Unwrap() error { return e.is }
