package transport

import (
	"fmt"
	"strings"

	"weir"
)

// All subjects are made here.
//
//	weir.<cluster>.d.<job>.<attempt>.<to-task>.<from-task>   frames and probes; the edge is in the frame
//	weir.<cluster>.k.<job>.<attempt>.<from-task>.<to-task>   acks of the channels of one sending task
//	weir.<cluster>.w.<worker>.command · .ping                server → worker
//	weir.<cluster>.s.report · .s.heartbeat                   worker → every server
//
// A task is <chain>_<subtask>. A receiver subscribes d…<to-task>.*, a sender
// k…<from-task>.*.
type subjects struct{ prefix string }

// defaultCluster names a cluster whose Options name none.
const defaultCluster = "default"

func newSubjects(cluster string) (subjects, error) {
	if cluster == "" {
		cluster = defaultCluster
	}
	if err := checkToken("cluster", cluster); err != nil {
		return subjects{}, err
	}
	return subjects{prefix: "weir." + cluster + "."}, nil
}

// checkToken refuses a name that cannot be one token of a subject.
func checkToken(what, name string) error {
	bad := func(r rune) bool {
		return r <= ' ' || r == '.' || r == '*' || r == '>' || r == 0x7f
	}
	if name == "" || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("%w: %s %q: use letters, digits, '-' and '_'", weir.ErrInvalid, what, name)
	}
	return nil
}

func taskToken(t weir.TaskID) string { return fmt.Sprintf("%d_%d", t.Chain, t.Subtask) }

func (s subjects) data(job weir.JobID, attempt weir.AttemptID, ch weir.ChannelID) string {
	return s.dataOf(job, attempt, ch.To) + taskToken(ch.From)
}

func (s subjects) dataTo(job weir.JobID, attempt weir.AttemptID, to weir.TaskID) string {
	return s.dataOf(job, attempt, to) + "*"
}

func (s subjects) dataOf(job weir.JobID, attempt weir.AttemptID, to weir.TaskID) string {
	return fmt.Sprintf("%sd.%s.%v.%s.", s.prefix, job, attempt, taskToken(to))
}

func (s subjects) acks(job weir.JobID, attempt weir.AttemptID, ch weir.ChannelID) string {
	return s.acksOf(job, attempt, ch.From) + taskToken(ch.To)
}

func (s subjects) acksTo(job weir.JobID, attempt weir.AttemptID, from weir.TaskID) string {
	return s.acksOf(job, attempt, from) + "*"
}

func (s subjects) acksOf(job weir.JobID, attempt weir.AttemptID, from weir.TaskID) string {
	return fmt.Sprintf("%sk.%s.%v.%s.", s.prefix, job, attempt, taskToken(from))
}

func (s subjects) command(w weir.WorkerID) string { return s.prefix + "w." + string(w) + ".command" }
func (s subjects) ping(w weir.WorkerID) string    { return s.prefix + "w." + string(w) + ".ping" }
func (s subjects) report() string                 { return s.prefix + "s.report" }
func (s subjects) heartbeat() string              { return s.prefix + "s.heartbeat" }
