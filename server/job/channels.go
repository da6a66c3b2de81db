package job

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"weir"
	"weir/exec/deploy"
)

// AllSubtasks stands for the subtask of a task in a Channel that is a sum.
const AllSubtasks = deploy.AllSubtasks

// A Channel is how a channel of a job's newest attempt fares, both its ends together. A
// subtask that is AllSubtasks means a sum: its workers have too many channels to tell of
// one by one.
type Channel struct {
	Job            weir.JobID
	Attempt        weir.AttemptID
	ID             weir.ChannelID
	Local          bool    // both ends are in one worker; of a sum: of every channel
	QueuedBytes    int64   // wait at either end
	UnackedBytes   int64   // sent and not acknowledged
	CreditBytes    int64   // may be sent now
	BytesPerSecond float64 // the receiving task took, of late
	Resent         uint64  // frames sent again
}

// Channels are the channels of a job, and who was asked in vain.
type Channels struct {
	List       []Channel       // in order
	Unanswered []weir.WorkerID // run tasks of the job and did not answer, in order
}

// Figures are a job and its figures.
type Figures struct {
	Job   weir.Job
	Rates Rates // of a job that has ended only where its last words are known
}

// WorkerFigures are a worker, whether it answered, and how its memory is used: as it answered, or as its last
// heartbeat said, without what is in channels.
type WorkerFigures struct {
	Worker
	Up bool
}

// Memory is how a worker's memory is used.
type Memory = deploy.Memory

// An Observation is everything that is measured at one time.
type Observation struct {
	Jobs     []Figures // all that have not ended, and the newest of those that have
	Workers  []WorkerFigures
	Channels []Channel
}

// Workers have observeWithin to answer; those that were not heard lately, which may hang,
// have quietWithin, so that nobody waits for them again and again until they are judged.
const (
	observeWithin = 2 * time.Second
	quietWithin   = 200 * time.Millisecond
)

// endedObserved bounds the ended jobs of an Observation.
const endedObserved = 100

func (s *Service) observe(ctx context.Context) (Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, observeWithin)
	defer cancel()
	var o Observation
	workers, err := s.workers(ctx)
	if err != nil {
		return o, err
	}
	ids := make([]weir.WorkerID, len(workers))
	for i, w := range workers {
		ids[i] = w.ID
	}
	var jobs errgroup.Group // the metastore may be away, the workers not
	jobs.Go(func() error {
		var err error
		o.Jobs, err = s.observeJobs(ctx)
		return err
	})
	stats, memory, up := s.askChannels(ctx, ids, "")
	o.Channels = mergeChannels(stats)
	for i, w := range workers {
		if up[i] {
			w.Memory = memory[i]
		}
		o.Workers = append(o.Workers, WorkerFigures{w, up[i]})
	}
	err = jobs.Wait()
	return o, err
}

func (s *Service) observeJobs(ctx context.Context) ([]Figures, error) {
	var out []Figures
	for _, f := range []weir.JobFilter{{Status: alive()}, {Status: ended(), Limit: endedObserved}} {
		list, err := s.List(ctx, f)
		if err != nil {
			return out, err
		}
		for _, j := range list {
			r, err := s.ratesOf(j)
			if err != nil {
				s.deps.Logger.Warn("figures of a job not known", "job", j.ID, "err", err)
			}
			out = append(out, Figures{j, r})
		}
	}
	return out, nil
}

func (s *Service) channels(ctx context.Context, idOrName string) (Channels, error) {
	ctx, cancel := context.WithTimeout(ctx, observeWithin)
	defer cancel()
	j, err := s.Get(ctx, idOrName)
	if err != nil {
		return Channels{}, err
	}
	s.mu.Lock()
	ids := s.mu.workers.runs(j.ID, weir.AttemptID{})
	s.mu.Unlock()
	stats, _, up := s.askChannels(ctx, ids, j.ID)
	c := Channels{List: mergeChannels(stats)}
	for i, id := range ids {
		if !up[i] {
			c.Unanswered = append(c.Unanswered, id)
		}
	}
	return c, nil
}

// askChannels asks workers at once for the channels of a job, or of all, and how each
// uses its memory; up says which of them have answered.
func (s *Service) askChannels(ctx context.Context, ids []weir.WorkerID, job weir.JobID) (stats []weir.ChannelStats, memory []Memory, up []bool) {
	lists := make([][]weir.ChannelStats, len(ids))
	memory, up = make([]Memory, len(ids)), make([]bool, len(ids))
	var g errgroup.Group
	for i, id := range ids {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, s.patience(id))
			defer cancel()
			var answer deploy.ChannelList
			body, err := s.askLiving(ctx, id, deploy.KindChannels, deploy.Channels{Header: deploy.Head(), Job: job})
			if err == nil {
				err = deploy.Decode(body, &answer)
			}
			if err != nil {
				// A line for each scrape would be too much: who asked is told who is silent.
				s.deps.Logger.Debug("a worker does not tell its figures", "worker", id, "err", err)
				return nil // the others' count
			}
			lists[i], memory[i], up[i] = answer.Channels, answer.Memory, true
			return nil
		})
	}
	g.Wait() //nolint:errcheck // there is none
	return slices.Concat(lists...), memory, up
}

// patience is how long a worker has to answer.
func (s *Service) patience(id weir.WorkerID) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.workers.quiet(s.now(), id) {
		return quietWithin
	}
	return observeWithin
}

// ends are the figures of a channel by where they come from.
type ends struct {
	local, sending, receiving          weir.ChannelStats
	hasLocal, hasSending, hasReceiving bool
}

func (e *ends) add(c weir.ChannelStats) {
	switch {
	case c.Local:
		e.local.Add(c)
		e.hasLocal = true
	case c.Sending:
		e.sending.Add(c)
		e.hasSending = true
	default:
		e.receiving.Add(c)
		e.hasReceiving = true
	}
}

// channel joins the ends: what waits may wait at either, credit is the sender's, and what
// flows is what the receiver takes. An end that is not known is answered for by the other.
func (e *ends) channel(c Channel) Channel {
	credit, flow := e.sending, e.receiving
	if !e.hasSending {
		credit = e.receiving
	}
	if !e.hasReceiving {
		flow = e.sending
	}
	c.Local = e.hasLocal && !e.hasSending && !e.hasReceiving
	c.QueuedBytes = e.local.QueuedBytes + e.sending.QueuedBytes + e.receiving.QueuedBytes
	c.UnackedBytes = e.local.UnackedBytes + e.sending.UnackedBytes
	c.CreditBytes = e.local.CreditBytes + credit.CreditBytes
	c.BytesPerSecond = e.local.BytesPerSecond + flow.BytesPerSecond
	c.Resent = e.sending.Resent
	return c
}

// mergeChannels makes one of both ends of each channel, of the newest attempt of each job.
// Where one worker tells sums of an edge, the others' figures of it are summed alike.
func mergeChannels(stats []weir.ChannelStats) []Channel {
	type edgeKey struct {
		job  weir.JobID
		edge int
	}
	type channelKey struct {
		job weir.JobID
		id  weir.ChannelID
	}
	newest, grain := map[weir.JobID]weir.AttemptID{}, map[edgeKey]deploy.Grain{}
	for _, c := range stats {
		if compareAttempts(c.Attempt, newest[c.Job]) > 0 {
			newest[c.Job] = c.Attempt
		}
	}
	stats = slices.DeleteFunc(slices.Clone(stats), func(c weir.ChannelStats) bool { return c.Attempt != newest[c.Job] })
	for _, c := range stats {
		key := edgeKey{c.Job, c.Channel.Edge}
		grain[key] = max(grain[key], deploy.GrainOf(c.Channel))
	}
	all := map[channelKey]*ends{}
	for _, c := range stats {
		key := channelKey{c.Job, grain[edgeKey{c.Job, c.Channel.Edge}].Coarsen(c.Channel)}
		if all[key] == nil {
			all[key] = &ends{}
		}
		all[key].add(c)
	}
	keys := slices.SortedFunc(maps.Keys(all), func(a, b channelKey) int {
		if c := strings.Compare(string(a.job), string(b.job)); c != 0 {
			return c
		}
		return deploy.CompareChannels(a.id, b.id)
	})
	list := make([]Channel, len(keys))
	for i, key := range keys {
		list[i] = all[key].channel(Channel{Job: key.job, Attempt: newest[key.job], ID: key.id})
	}
	return list
}

func compareAttempts(a, b weir.AttemptID) int {
	if a.Number != b.Number {
		return int(a.Number - b.Number)
	}
	return strings.Compare(a.Tag, b.Tag)
}
