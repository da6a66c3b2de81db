package job

import "time"

// A leaseMachine keeps one server's lease on a shard: it says when to ask for it and
// whether the server may decide. Times are the server's own; the lease is counted from
// the moment it was asked for, so the holder stops before the database lets it go.
type leaseMachine struct {
	holder string
	ttl    time.Duration

	term  int64     // of the lease held; 0: none
	until time.Time // the lease held ends
	askAt time.Time // when to ask next
	asked bool      // an answer is awaited
}

// leaseDo says what the driver of a leaseMachine has to do. Lost comes before Gained.
type leaseDo struct {
	Ask    bool
	Lost   bool
	Gained int64 // the term; 0: nothing was gained
}

// newLeaseMachine makes the machine of a server that asks at once.
func newLeaseMachine(holder string, ttl time.Duration) *leaseMachine {
	return &leaseMachine{holder: holder, ttl: ttl}
}

// step looks at the clock.
func (m *leaseMachine) step(now time.Time) leaseDo {
	var do leaseDo
	if m.term != 0 && !now.Before(m.until) {
		m.term, do.Lost = 0, true
	}
	if !m.asked && !now.Before(m.askAt) {
		m.asked, do.Ask = true, true
	}
	return do
}

// answered takes in the lease as it stands at the database, asked for at a time; or
// that the question failed, when lease is nil.
func (m *leaseMachine) answered(now, askedAt time.Time, lease *Lease) leaseDo {
	var do leaseDo
	m.asked, m.askAt = false, askedAt.Add(m.ttl/3)
	if lease == nil {
		m.askAt = now.Add(m.ttl / 6)
		return do
	}
	held := lease.Holder == m.holder
	if m.term != 0 && (!held || lease.Term != m.term) {
		m.term, do.Lost = 0, true
	}
	if !held {
		return do
	}
	if m.until = askedAt.Add(m.ttl); !now.Before(m.until) {
		return do // the answer took so long that the lease may be gone
	}
	if m.term == 0 {
		m.term, do.Gained = lease.Term, lease.Term
	}
	return do
}

// next is when step is due; zero: not before the answer.
func (m *leaseMachine) next() time.Time {
	switch {
	case m.term == 0 && m.asked:
		return time.Time{}
	case m.asked, m.term != 0 && m.until.Before(m.askAt):
		return m.until
	}
	return m.askAt
}
