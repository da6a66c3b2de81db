package transport

import (
	"fmt"
	"strings"

	"weir"
)

// All subjects are made here, and deploy/nats.conf allows them one by one.
//
//	weir.<cluster>.d.<job>.<attempt>.<to-task>.<from-task>   frames and probes; the edge is in the frame
//	weir.<cluster>.k.<job>.<attempt>.<from-task>.<to-task>   acks of the channels of one sending task
//	weir.<cluster>.w.<worker>.command.<kind> · .ping         server → worker; the kind read also worker → worker
//	weir.<cluster>.w.<worker>.life.<incarnation>.<kind>      the same, for one life of the worker
//	weir.<cluster>.s.<server>.…                              the same, server → server
//	weir.<cluster>.s.report · .s.heartbeat                   worker → every server
//	weir.<cluster>.i.<to>.<life>.<from>.<id>                 answers; to and from are w.<worker>, or s for a server
//
// A task is <chain>_<subtask>. A receiver subscribes d…<to-task>.*, a sender
// k…<from-task>.*. A command's kind is in its subject, so that NATS decides who may
// send which. An answer goes to the subject that the question named, and nobody is allowed
// to publish on it but who was asked. (NATS could let those answer, and no others, whom a
// question has reached; but it takes the subject of the answer from the question, so that a
// worker which sends itself a frame that asks for an answer might then say anything.)
type subjects struct{ prefix string }

// serverPrefix begins the names under which servers take commands; no worker's name
// begins so.
const serverPrefix = "server-"

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

// checkWorker refuses what is no name of a worker.
func checkWorker(name weir.WorkerID) error {
	if strings.HasPrefix(string(name), serverPrefix) || strings.Contains(string(name), "@") {
		return fmt.Errorf("%w: worker %q: a name with '@', or that begins with %q, is no worker's", weir.ErrInvalid, name, serverPrefix)
	}
	return checkToken("worker", string(name))
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

// place is where a worker, or a server, takes commands.
func (s subjects) place(name weir.WorkerID) string {
	if strings.HasPrefix(string(name), serverPrefix) {
		return s.prefix + "s." + string(name)
	}
	return s.prefix + "w." + string(name)
}

// command is the subject of a command, of any kind for "*", to a worker or to one life
// of it.
func (s subjects) command(w weir.WorkerID, kind string) string {
	if name, life, ok := strings.Cut(string(w), "@"); ok {
		return s.place(weir.WorkerID(name)) + ".life." + life + "." + kind
	}
	return s.place(w) + ".command." + kind
}

// kindOf is the kind of a command, out of its subject.
func kindOf(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }

func (s subjects) ping(w weir.WorkerID) string { return s.place(w) + ".ping" }
func (s subjects) report() string              { return s.prefix + "s.report" }
func (s subjects) heartbeat() string           { return s.prefix + "s.heartbeat" }

// inbox begins the subjects of answers to one life of a worker, or of a server ("").
func (s subjects) inbox(to weir.WorkerID, life string) string {
	return s.prefix + "i." + s.from(to) + "." + life + "."
}

// from is who asks, or answers, in the subject of an answer.
func (s subjects) from(name weir.WorkerID) string {
	worker, _, _ := strings.Cut(string(name), "@")
	if worker == "" || strings.HasPrefix(worker, serverPrefix) {
		return "s"
	}
	return "w." + worker
}
