package job

import "time"

// A leaseMachine keeps one server's lease on a shard: it says when to ask for it and
// whether the server may decide. Times are the server's own; the lease is counted from
// the moment it was asked for, so that it lapses here before the database lets it go.
//
// A lease that has lapsed is not lost yet: the database may be away, and then nobody else
// can have taken it. What runs under it goes on until the database is heard. The term
// tells what happened meanwhile: the same one, nobody held it between; another one,
// somebody did. The fence of what is written, term and attempt, keeps that safe.
type leaseMachine struct {
	holder string
	ttl    time.Duration

	term   int64     // of the lease that was ours when the database was last heard; 0: none was
	until  time.Time // the lease of that term ends
	lapsed bool      // it has ended, and whose it is now is not known
	askAt  time.Time // when to ask next
	asked  bool      // an answer is awaited
}

// leaseDo says what the driver of a leaseMachine has to do. Lost comes before Gained.
type leaseDo struct {
	Ask    bool
	Lapsed bool  // nothing may be decided until it is Kept or Lost
	Kept   bool  // after it had lapsed: nobody held it between
	Lost   bool  // somebody else holds it, or has held it
	Gained int64 // the term; 0: nothing was gained
}

// newLeaseMachine makes the machine of a server that asks at once.
func newLeaseMachine(holder string, ttl time.Duration) *leaseMachine {
	return &leaseMachine{holder: holder, ttl: ttl}
}

// step looks at the clock.
func (m *leaseMachine) step(now time.Time) leaseDo {
	var do leaseDo
	if m.term != 0 && !m.lapsed && !now.Before(m.until) {
		m.lapsed, do.Lapsed = true, true
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
		m.term, m.lapsed, do.Lost = 0, false, true
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
	do.Kept, m.lapsed = m.lapsed, false
	return do
}

// decides reports whether the lease is ours now, as far as we can know; until when is
// in m.until.
func (m *leaseMachine) decides() bool { return m.term != 0 && !m.lapsed }

// next is when step is due; zero: not before the answer.
func (m *leaseMachine) next() time.Time {
	switch {
	case m.asked && !m.decides():
		return time.Time{}
	case m.decides() && (m.asked || m.until.Before(m.askAt)):
		return m.until
	}
	return m.askAt
}
