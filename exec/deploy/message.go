package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"weir"
)

// Version is the version of all messages of this package.
const Version = 2

// The kinds of commands.
const (
	KindDeploy     = "deploy"
	KindTrigger    = "trigger"
	KindCommit     = "commit"
	KindProgress   = "progress"
	KindClose      = "close"
	KindStop       = "stop"
	KindCommitOnly = "commit_only"
	KindResults    = "results"
	KindChanges    = "changes"
	KindRead       = "read"
	KindChannels   = "channels"
	KindCheckpoint = "checkpoint" // between servers: trigger at the holder of the lease
	// KindCancelCheckpoint has a pending checkpoint given up there.
	KindCancelCheckpoint = "cancel_checkpoint"
	// KindReturned is a report: Returned.
	KindReturned = "returned"
)

// A Header begins every message.
type Header struct {
	Version int `json:"version"`
}

// Head is the header of a message made by this version.
func Head() Header { return Header{Version: Version} }

func (h Header) version() int { return h.Version }

// A Message is one of the messages of this package: each embeds Header.
type Message interface{ version() int }

// Encode gives the bytes of a message. Messages hold nothing that cannot be encoded.
func Encode(m Message) []byte {
	body, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("deploy: encode %T: %v", m, err))
	}
	return body
}

// Decode reads what Encode wrote into m, a pointer to a message. The error is
// weir.ErrInvalid: damaged bytes, or a version this build does not know.
func Decode(body []byte, m Message) error {
	if err := json.Unmarshal(body, m); err != nil {
		return fmt.Errorf("%w: message %T: %w", weir.ErrInvalid, m, err)
	}
	if v := m.version(); v != Version {
		return fmt.Errorf("%w: message %T has version %d, this build reads %d: run servers and workers of one version", weir.ErrInvalid, m, v, Version)
	}
	return nil
}

// A Reply answers a command: Body, or Error when it was refused.
type Reply struct {
	Header
	Error *Error          `json:"error,omitempty"`
	Body  json.RawMessage `json:"body,omitempty"`
}

// An Error is a refusal on the wire.
type Error struct {
	Kind    string `json:"kind,omitempty"` // invalid, not_found, conflict, stale; empty: any other
	Message string `json:"message"`
}

// sentinels are the words for the four sentinel errors on the wire.
var sentinels = []struct {
	kind string
	err  error
}{
	{"invalid", weir.ErrInvalid}, {"not_found", weir.ErrNotFound}, {"conflict", weir.ErrConflict}, {"stale", weir.ErrStale},
}

// bodyBegins is how a reply with a body begins; it ends with a brace. Bodies may be
// large, so that they are put in and taken out as they are: whoever decodes one checks it.
var bodyBegins = fmt.Appendf(nil, `{"version":%d,"body":`, Version)

// EncodeReply gives the bytes of the answer to a command: body, which Encode made or
// which is empty, or err.
func EncodeReply(body []byte, err error) []byte {
	if err == nil && len(body) > 0 {
		return slices.Concat(bodyBegins, body, []byte("}"))
	}
	r := Reply{Header: Head()}
	if err != nil {
		r.Error = &Error{Message: err.Error()}
		for _, s := range sentinels {
			if errors.Is(err, s.err) {
				r.Error.Kind = s.kind
			}
		}
	}
	return Encode(r)
}

// DecodeReply reads what EncodeReply wrote: the body, or an error that wraps the
// sentinel the other side's error wrapped.
func DecodeReply(reply []byte) ([]byte, error) {
	if rest, ok := bytes.CutPrefix(reply, bodyBegins); ok {
		if body, ok := bytes.CutSuffix(rest, []byte("}")); ok {
			return body, nil
		}
	}
	var r Reply
	if err := Decode(reply, &r); err != nil {
		return nil, err
	}
	if r.Error == nil {
		return r.Body, nil
	}
	for _, s := range sentinels {
		if s.kind == r.Error.Kind {
			return nil, &remoteError{message: r.Error.Message, sentinel: s.err}
		}
	}
	return nil, &remoteError{message: r.Error.Message}
}

// A remoteError is an error of the other side with its text unchanged.
type remoteError struct {
	message  string
	sentinel error
}

func (e *remoteError) Error() string { return e.message }
func (e *remoteError) Unwrap() error { return e.sentinel }

// Refused reports whether err is a refusal that came over the wire, rather than a
// failure to reach the other side.
func Refused(err error) bool {
	var remote *remoteError
	return errors.As(err, &remote)
}
