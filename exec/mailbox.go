package exec

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"weir"
	"weir/checkpoint"
)

// maxQuestions bounds the reads that wait for one task.
const maxQuestions = 64

// A mailbox holds what others ask of a task until its loop looks. Nothing in it is
// lost and no sender ever waits; all of it is bounded: triggers by the coordinator,
// which has few open, commits by those, questions by maxQuestions.
type mailbox struct {
	wakeC chan struct{} // capacity 1, shared with the task's inputs
	full  atomic.Bool   // something is in mu
	mu    struct {
		sync.Mutex
		triggers  []checkpoint.Trigger
		commits   []weir.CheckpointID
		questions []question
		close     bool
	}
}

// A question is a read that waits for the loop; replyC has room for its reply.
type question struct {
	query  Query
	replyC chan reply
}

type reply struct {
	page Page
	err  error
}

// letters is what a mailbox held.
type letters struct {
	triggers  []checkpoint.Trigger
	commits   []weir.CheckpointID
	questions []question
	close     bool
}

func newMailbox() *mailbox { return &mailbox{wakeC: make(chan struct{}, 1)} }

func (m *mailbox) trigger(t checkpoint.Trigger) {
	m.mu.Lock()
	m.mu.triggers = append(m.mu.triggers, t)
	m.mu.Unlock()
	m.wake()
}

// triggered reports whether the trigger of a checkpoint waits for the loop.
func (m *mailbox) triggered(id weir.CheckpointID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.mu.triggers, func(t checkpoint.Trigger) bool { return t.Checkpoint == id })
}

func (m *mailbox) commit(id weir.CheckpointID) {
	m.mu.Lock()
	m.mu.commits = append(m.mu.commits, id)
	m.mu.Unlock()
	m.wake()
}

func (m *mailbox) close() {
	m.mu.Lock()
	m.mu.close = true
	m.mu.Unlock()
	m.wake()
}

func (m *mailbox) ask(q question) error {
	m.mu.Lock()
	n := len(m.mu.questions)
	if n < maxQuestions {
		m.mu.questions = append(m.mu.questions, q)
	}
	m.mu.Unlock()
	if n >= maxQuestions {
		return fmt.Errorf("%w: %d reads wait already", weir.ErrConflict, n)
	}
	m.wake()
	return nil
}

func (m *mailbox) wake() {
	m.full.Store(true)
	select {
	case m.wakeC <- struct{}{}:
	default:
	}
}

// take empties the mailbox. It costs one atomic load while nothing is there.
func (m *mailbox) take() (letters, bool) {
	if !m.full.Load() {
		return letters{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full.Store(false)
	l := letters{m.mu.triggers, m.mu.commits, m.mu.questions, m.mu.close}
	m.mu.triggers, m.mu.commits, m.mu.questions = nil, nil, nil
	return l, true
}
