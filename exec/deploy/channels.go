package deploy

import (
	"cmp"
	"slices"

	"weir"
)

// Channels asks a worker how its channels fare. The answer is a ChannelList.
type Channels struct {
	Header
	Job weir.JobID `json:"job,omitempty"` // empty: those of all jobs
}

// A ChannelList is how the channels of a worker fare, in order, and what it takes of memory.
type ChannelList struct {
	Header
	Channels []weir.ChannelStats `json:"channels"`
	Memory   Memory              `json:"memory"` // of the worker
}

// AllSubtasks stands for the subtask of a task in weir.ChannelStats that are a sum.
const AllSubtasks = -1

// MaxChannels is how many channels a worker tells of one by one.
const MaxChannels = 1000

// A Grain is how finely channels are told apart.
type Grain uint8

// Grains, from fine to coarse.
const (
	PerChannel Grain = iota
	PerReceiver
	PerEdge
)

// GrainOf is the grain of figures.
func GrainOf(ch weir.ChannelID) Grain {
	switch {
	case ch.To.Subtask == AllSubtasks:
		return PerEdge
	case ch.From.Subtask == AllSubtasks:
		return PerReceiver
	}
	return PerChannel
}

// Coarsen names the sum, of a grain, that a channel belongs to.
func (g Grain) Coarsen(ch weir.ChannelID) weir.ChannelID {
	if g >= PerReceiver {
		ch.From.Subtask = AllSubtasks
	}
	if g >= PerEdge {
		ch.To.Subtask = AllSubtasks
	}
	return ch
}

// SumChannels keeps an answer small: of more than most ends it gives sums per edge and
// receiving task, and of more than most of those, sums per edge. Local channels, sending
// and receiving ends are summed apart.
func SumChannels(list []weir.ChannelStats, most int) []weir.ChannelStats {
	sums := list
	for g := PerReceiver; g <= PerEdge && len(sums) > most; g++ {
		sums = sumBy(list, g)
	}
	return sums
}

func sumBy(list []weir.ChannelStats, g Grain) []weir.ChannelStats {
	type sumKey struct {
		job            weir.JobID
		attempt        weir.AttemptID
		channel        weir.ChannelID
		local, sending bool
	}
	at := map[sumKey]int{}
	var sums []weir.ChannelStats
	for _, c := range list {
		c.Channel = g.Coarsen(c.Channel)
		key := sumKey{c.Job, c.Attempt, c.Channel, c.Local, c.Sending}
		if i, ok := at[key]; ok {
			sums[i].Add(c)
			continue
		}
		at[key] = len(sums)
		sums = append(sums, c)
	}
	slices.SortStableFunc(sums, func(a, b weir.ChannelStats) int {
		return cmp.Or(
			cmp.Compare(a.Job, b.Job), cmp.Compare(a.Attempt.Number, b.Attempt.Number), cmp.Compare(a.Attempt.Tag, b.Attempt.Tag),
			CompareChannels(a.Channel, b.Channel),
		)
	})
	return sums
}

// CompareChannels orders channels by edge, sender and receiver.
func CompareChannels(a, b weir.ChannelID) int {
	return cmp.Or(cmp.Compare(a.Edge, b.Edge), a.From.Compare(b.From), a.To.Compare(b.To))
}
