package exec

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"weir"
	"weir/checkpoint"
)

const (
	// maxQuestions bounds the reads that wait for one task.
	maxQuestions = 64
	// triggersKept bounds what is remembered of triggers.
	triggersKept = 64
)

// A mailbox holds what others ask of a task until its loop looks. Nothing in it is
// lost and no sender ever waits; all of it is bounded: triggers by the coordinator,
// which has few open, commits by those, questions by maxQuestions. What is said again, as
// often as an answer is lost, is there once.
type mailbox struct {
	wakeC chan struct{} // capacity 1, shared with the task's inputs
	full  atomic.Bool   // something is in mu
	mu    struct {
		sync.Mutex
		triggers  []checkpoint.Trigger
		came      []weir.CheckpointID // triggers so far, the last triggersKept
		commits   []weir.CheckpointID
		questions []question
		close     bool
		paused    bool  // the source reads nothing
		broken    error // of the first output that broke
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
	paused    bool
	broken    error
}

func newMailbox() *mailbox { return &mailbox{wakeC: make(chan struct{}, 1)} }

func (m *mailbox) trigger(t checkpoint.Trigger) {
	m.mu.Lock()
	if !slices.Contains(m.mu.came, t.Checkpoint) {
		m.mu.triggers = append(m.mu.triggers, t)
		if m.mu.came = append(m.mu.came, t.Checkpoint); len(m.mu.came) > triggersKept {
			m.mu.came = slices.Delete(m.mu.came, 0, 1)
		}
	}
	m.mu.Unlock()
	m.wake()
}

// triggered reports whether the trigger of a checkpoint has come, be it taken or not.
func (m *mailbox) triggered(id weir.CheckpointID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.mu.came, id)
}

func (m *mailbox) commit(id weir.CheckpointID) {
	m.mu.Lock()
	if !slices.Contains(m.mu.commits, id) {
		m.mu.commits = append(m.mu.commits, id)
	}
	m.mu.Unlock()
	m.wake()
}

func (m *mailbox) close() {
	m.mu.Lock()
	m.mu.close = true
	m.mu.Unlock()
	m.wake()
}

func (m *mailbox) pause(on bool) {
	m.mu.Lock()
	m.mu.paused = on
	m.mu.Unlock()
	m.wake()
}

// broken says that an output is broken: a task that sends nothing would not notice.
func (m *mailbox) broken(err error) {
	m.mu.Lock()
	if m.mu.broken == nil {
		m.mu.broken = err
	}
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
	l := letters{m.mu.triggers, m.mu.commits, m.mu.questions, m.mu.close, m.mu.paused, m.mu.broken}
	m.mu.triggers, m.mu.commits, m.mu.questions = nil, nil, nil
	return l, true
}
