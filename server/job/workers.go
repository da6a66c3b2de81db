package job

import (
	"maps"
	"slices"
	"time"

	"weir"
	"weir/exec/deploy"
)

// A Worker is a worker process that servers hear of.
type Worker struct {
	ID          weir.WorkerID
	Incarnation string
	PID         int
	Host        string
	Slots       int
	FreeSlots   int
	Tasks       int
	Jobs        []weir.JobID
	HeardAt     time.Time
	Memory      Memory
}

// Rates are the figures of a job's running attempt.
type Rates struct {
	Attempt weir.AttemptID
	RowsIn  int64 // read by sources since the attempt began
	RowsOut int64 // given to sinks and results
	// RowsRejected are all that the job rejected since it began, not the attempt.
	RowsRejected int64
	BytesIn      int64 // read by sources
	// RowsInPerSecond, RowsOutPerSecond and BytesInPerSecond are those of the last seconds.
	RowsInPerSecond  float64
	RowsOutPerSecond float64
	BytesInPerSecond float64
	State            StateFigures
	Chains           []ChainRates // by chain of the graph
	Bottleneck       *Bottleneck  // nil: nothing holds the job up but its sources' pace
}

// StateFigures are those of the state of tasks.
type StateFigures struct {
	Bytes        int64   // in memory
	Spilled      int64   // entries on disk only
	UploadBytes  int64   // runs that no completed checkpoint holds yet
	DeltaSeconds float64 // of a core, since the attempt began, that went into writing what changed
}

func (f *StateFigures) add(o StateFigures) {
	f.Bytes += o.Bytes
	f.Spilled += o.Spilled
	f.UploadBytes += o.UploadBytes
	f.DeltaSeconds += o.DeltaSeconds
}

// Known reports whether tasks of the attempt have told what they did. Where none has, the
// zeros of Rates are no figures.
func (r *Rates) Known() bool {
	return slices.ContainsFunc(r.Chains, func(c ChainRates) bool { return c.Tasks > 0 })
}

// ChainRates are the figures of one chain, over its subtasks.
type ChainRates struct {
	Chain int
	Tasks int // that told their figures
	Flow
	// Busy, Blocked and Idle are shares of the last seconds, 0 to 1, on average over its
	// subtasks: at work, waiting for a full channel, and for input or time. They add up to 1;
	// all are 0 where nothing is known of them.
	Busy, Blocked, Idle float64
	// Busiest is the subtask that is busy most; MostBlocked is the share of the most blocked one.
	Busiest     Share
	MostBlocked float64
	// IdleSeconds and BlockedSeconds are those of all subtasks since the attempt began.
	IdleSeconds, BlockedSeconds float64
	Watermark                   time.Time // the lowest; zero: none
	State                       StateFigures
	Operators                   []OperatorRates // of the chain, in order

	shares int // of its tasks: those whose shares are known
}

// The bounds by which a worker is judged (ARCHITECTURE §7).
const (
	pingOften     = 100 * time.Millisecond // unheard of for that long: ping, where workers are few
	pingSeldom    = 500 * time.Millisecond // where they are many
	pingsPerS     = 500                    // to all workers together
	absentAgain   = 40 * time.Millisecond  // pings to one whom nobody answered for are so far apart
	silentFor     = 5 * time.Second        // it is there and says nothing, others are heard
	silentAlone   = 60 * time.Second       // nobody else is heard either: it may be our own fault
	forgottenFor  = 30 * time.Second       // a lost worker is listed no longer
	rateOver      = 5 * time.Second        // rates and shares are those of so long
	rateOld       = 3 * time.Second        // who has told nothing for longer has no rates
	beatsKept     = 16
	formerKept    = 16
	twinBeats     = 3                       // a former life says so much: it is no late word
	settleWithin  = 1200 * time.Millisecond // every worker has said something within
	gatherWithin  = 5 * time.Second         // who starts again and again is waited for no longer
	heardBefore   = 1500 * time.Millisecond // who is not heard for longer may be cut off
	backFor       = 3 * time.Second         // and then has a new connection to NATS within
	workerGone    = "its process ended"
	workerAbsent  = "nobody answers under its name"
	workerAgain   = "its process was started anew"
	workerSilent  = "it has not been heard for too long"
	workerLeaving = "it was told to end"
)

// A registry knows the workers by their heartbeats and judges which are dead. It is
// pure: what it wants done, pings, and what it found, deaths, are returned.
type registry struct {
	workers map[weir.WorkerID]*workerState
	upSince time.Time // our own connection, and the set of NATS servers, have been as they are since; zero: it is down
	stable  time.Time // upSince by the connection's word
	heardAt time.Time // when anything was heard of any worker
	// gather is since when workers have joined one after another, joined is when the last of
	// them did; our own start is the first.
	gather, joined time.Time
	// absentFor is for how long nobody has to answer at a worker's name: longer than it
	// takes to connect again, or elsewhere.
	absentFor time.Duration
}

type workerState struct {
	beat     deploy.Heartbeat // the last one
	at       time.Time        // when anything was heard
	lost     string           // why it is dead; empty: it lives
	absent   time.Time        // since when nobody answers; zero: somebody does
	backAt   time.Time        // when it was last heard after it had not been for longer than heardBefore
	history  []beatAt         // oldest first
	former   []string         // incarnations that this one replaced: their processes may hang and wake up
	twins    int              // heartbeats of those, since this one was first heard
	lostAt   time.Time
	pingedAt time.Time
}

type beatAt struct {
	at   time.Time
	beat deploy.Heartbeat
}

// A death is a worker found dead.
type death struct {
	Worker weir.WorkerID
	Why    string
}

func newRegistry() *registry { return &registry{workers: map[weir.WorkerID]*workerState{}} }

// heard takes a heartbeat in. joined says that the worker may take tasks that it could
// not before.
func (r *registry) heard(now time.Time, beat deploy.Heartbeat) (joined bool, dead []death) {
	w := r.workers[beat.Worker]
	switch {
	case w == nil:
		w = &workerState{}
		r.workers[beat.Worker], joined = w, true
	case slices.Contains(w.former, beat.Incarnation):
		return false, nil
	case w.beat.Incarnation != beat.Incarnation:
		if w.lost == "" {
			dead = append(dead, death{beat.Worker, workerAgain})
		}
		w = &workerState{former: append(lastOf(w.former, formerKept-1), w.beat.Incarnation)}
		r.workers[beat.Worker], joined = w, true
	case w.lost == workerGone, w.lost == workerAgain, w.lost == workerLeaving:
		return false, nil // a late word of a process that has ended
	case w.lost != "":
		w.lost, joined = "", true // it was only silent
	}
	if beat.Leaving {
		if w.lost == "" {
			dead = append(dead, death{beat.Worker, workerLeaving})
		}
		w.lost, w.lostAt, joined = workerLeaving, now, false
	}
	if joined && len(beat.Attempts) == 0 {
		r.joins(now)
	}
	joined = joined || w.beat.Slots < beat.Slots
	r.hears(now)
	w.hears(now)
	w.beat = beat
	if w.history = append(w.history, beatAt{now, beat}); len(w.history) > beatsKept {
		w.history = w.history[1:]
	}
	return joined, dead
}

// joins notes that a worker joined that runs nothing yet, or that we began to listen: others
// may be about to. Who comes a little later than is waited for is still one of those before: else
// a worker that starts again as often would always be waited for, but for a moment.
func (r *registry) joins(now time.Time) {
	if now.Sub(r.joined) >= 2*settleWithin {
		r.gather = now
	}
	r.joined = now
}

// settled is when every worker has been heard that was there when we began to listen, or
// that starts together with others.
func (r *registry) settled() time.Time {
	at, most := r.joined.Add(settleWithin), r.gather.Add(gatherWithin)
	if most.Before(at) {
		return most
	}
	return at
}

// twin reports, once in the life of a worker, that a process which this life replaced goes
// on under its name.
func (r *registry) twin(beat deploy.Heartbeat) bool {
	w := r.workers[beat.Worker]
	if w == nil || beat.Leaving || !slices.Contains(w.former, beat.Incarnation) {
		return false
	}
	w.twins++
	return w.twins == twinBeats
}

// lastOf gives the last n of a list.
func lastOf(list []string, n int) []string { return list[max(len(list)-n, 0):] }

// life is the name under which a worker's present process takes commands.
func (r *registry) life(id weir.WorkerID) weir.WorkerID {
	if w := r.workers[id]; w != nil {
		return id.Life(w.beat.Incarnation)
	}
	return id
}

// lost says why a worker is dead; empty: it lives, or nobody knows it.
func (r *registry) lost(id weir.WorkerID) string {
	if w := r.workers[id]; w != nil {
		return w.lost
	}
	return ""
}

// exited says that the process of a worker's life has ended; an empty incarnation is
// whichever is known.
func (r *registry) exited(now time.Time, id weir.WorkerID, incarnation string) []death {
	w := r.workers[id]
	if w == nil || incarnation != "" && w.beat.Incarnation != incarnation {
		return nil
	}
	return r.lose(now, id, workerGone)
}

// A pingResult is how a ping ended.
type pingResult uint8

const (
	pingAnswered pingResult = iota
	pingNobody              // no responders
	pingSilence             // no answer in time, or our own connection is to blame
)

// ponged takes the end of a ping that was sent at asked in. Pings overlap: one that was
// delivered to a process in its last moment tells nothing until its limit, and the next
// one tells that nobody is there.
func (r *registry) ponged(now, asked time.Time, id weir.WorkerID, result pingResult, incarnation string) []death {
	w := r.workers[id]
	if w == nil || w.lost != "" {
		return nil
	}
	if result == pingAnswered && slices.Contains(w.former, incarnation) {
		result = pingSilence // says nothing about the one that replaced it
	}
	switch {
	case result == pingAnswered && incarnation != w.beat.Incarnation:
		return r.lose(now, id, workerAgain)
	case result == pingAnswered:
		r.hears(now)
		w.hears(now)
	case result == pingSilence && !asked.Before(w.absent):
		w.absent = time.Time{} // somebody takes its pings
	case result == pingSilence:
	case w.absent.IsZero():
		w.absent = now
	case r.upSince.IsZero():
	case w.wasCutOff(): // it may have given its connection up: that is silence
	case now.Sub(later(w.absent, r.upSince)) >= r.absentFor:
		return r.lose(now, id, workerAbsent)
	}
	return nil
}

// hears notes that the worker is heard.
func (w *workerState) hears(now time.Time) {
	if !w.at.IsZero() && now.Sub(w.at) > heardBefore {
		w.backAt = now
	}
	w.at, w.absent = now, time.Time{}
}

// wasCutOff reports whether the worker could not be heard shortly before nobody answered
// under its name. Then its old connection may have been given up, its last words being
// late, and a new one be on its way.
func (w *workerState) wasCutOff() bool {
	return w.absent.Sub(w.at) > heardBefore || w.absent.Sub(w.backAt) < backFor
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// hears notes that somebody is heard. Where nobody was for longer than anybody is ever
// quiet, it was we who were cut off, though our connection does not know it yet: the
// others get as long as after a new one to be heard again.
func (r *registry) hears(now time.Time) {
	if !r.upSince.IsZero() && now.Sub(r.heardAt) > settleWithin {
		r.upSince = now
	}
	r.heardAt = now
}

// woke notes that we ourselves were stopped, as a process is by SIGSTOP: what others said
// meanwhile is still to be read, and their silence was ours.
func (r *registry) woke(now time.Time) {
	if !r.upSince.IsZero() {
		r.upSince = now
	}
}

// pingEvery is the time between two pings to a worker: the fewer workers there are, the
// sooner the death of one is known.
func (r *registry) pingEvery() time.Duration {
	return min(max(time.Duration(len(r.workers))*time.Second/pingsPerS, pingOften), pingSeldom)
}

// tick looks at the clock: whom to ping, and who has been silent for too long. stable is
// when our own connection came up, or the set of NATS servers changed; what was before that
// does not count. While it is down, zero, nobody is judged.
func (r *registry) tick(now, stable time.Time, absentFor time.Duration) (ping []weir.WorkerID, dead []death) {
	if !stable.Equal(r.stable) || r.upSince.IsZero() {
		r.stable, r.upSince = stable, now
	}
	r.absentFor = absentFor
	if stable.IsZero() {
		r.upSince = time.Time{}
		return nil, nil
	}
	for _, id := range r.ids() {
		w := r.workers[id]
		if w.lost != "" {
			if now.Sub(w.lostAt) > forgottenFor {
				delete(r.workers, id)
			}
			continue
		}
		quiet := min(now.Sub(w.at), now.Sub(r.upSince))
		if quiet >= silentAlone || quiet >= silentFor && r.hearsOthers(now, id) {
			dead = append(dead, r.lose(now, id, workerSilent)...)
			continue
		}
		due := r.pingEvery()
		if !w.absent.IsZero() {
			due = absentAgain
		}
		if now.Sub(w.at) >= due && now.Sub(w.pingedAt) >= due {
			w.pingedAt = now
			ping = append(ping, id)
		}
	}
	return ping, dead
}

// hearsOthers reports whether another worker is heard just now. One that has been quiet
// for as long as the one in question, but for a moment, says only that we hear nobody.
func (r *registry) hearsOthers(now time.Time, but weir.WorkerID) bool {
	for id, w := range r.workers {
		if id != but && w.lost == "" && now.Sub(w.at) <= settleWithin {
			return true
		}
	}
	return false
}

func (r *registry) lose(now time.Time, id weir.WorkerID, why string) []death {
	w := r.workers[id]
	if w.lost != "" {
		return nil
	}
	w.lost, w.lostAt = why, now
	return []death{{id, why}}
}

func (r *registry) ids() []weir.WorkerID { return slices.Sorted(maps.Keys(r.workers)) }

// alive lists the workers that may take tasks.
func (r *registry) alive() []*workerState {
	var list []*workerState
	for _, id := range r.ids() {
		if w := r.workers[id]; w.lost == "" {
			list = append(list, w)
		}
	}
	return list
}

// quiet reports whether a worker has not been heard for longer than one that is well ever is.
func (r *registry) quiet(now time.Time, id weir.WorkerID) bool {
	w := r.workers[id]
	return w == nil || now.Sub(w.at) > heardBefore
}

// runs lists the workers that run, or ran when last heard of, an attempt of the job:
// this one, or, when it is the zero one, any.
func (r *registry) runs(job weir.JobID, attempt weir.AttemptID) []weir.WorkerID {
	var list []weir.WorkerID
	for _, w := range r.alive() {
		if slices.ContainsFunc(w.beat.Attempts, func(a deploy.Running) bool {
			return a.Job == job && (attempt == weir.AttemptID{} || a.Attempt == attempt)
		}) {
			list = append(list, w.beat.Worker)
		}
	}
	return list
}

// parts lists where the tasks of a chain of an attempt run.
func (r *registry) parts(job weir.JobID, attempt weir.AttemptID, chain int) []deploy.Placed {
	var parts []deploy.Placed
	for _, w := range r.alive() {
		for _, a := range w.beat.Attempts {
			if a.Job != job || a.Attempt != attempt {
				continue
			}
			for _, t := range a.Tasks {
				if t.Task.Chain == chain {
					parts = append(parts, deploy.Placed{Task: t.Task, Worker: w.beat.Worker})
				}
			}
		}
	}
	slices.SortFunc(parts, func(a, b deploy.Placed) int { return a.Task.Compare(b.Task) })
	return parts
}
