package transport

import (
	"testing"

	"weir"
)

// ServerPending is what the embedded server keeps for a client.
const ServerPending = serverPending

// A Spoken is a subject of this package as it is used: who of the users in the
// configuration may publish on it, who may subscribe to it. "worker" stands for any
// worker, "worker-1" for that one alone.
type Spoken struct {
	Method             string // of subjects
	Subject            string
	Publish, Subscribe []string
}

// AllSpoken lists them all.
func AllSpoken(t testing.TB, cluster string) []Spoken {
	t.Helper()
	s, err := newSubjects(cluster)
	if err != nil {
		t.Fatal(err)
	}
	job, attempt := weir.NewJobID(), weir.NewAttemptID(1)
	ch := weir.ChannelID{Edge: 3, From: weir.TaskID{Chain: 1, Subtask: 2}, To: weir.TaskID{Chain: 4, Subtask: 5}}
	const one, other, srv = weir.WorkerID("worker-1"), weir.WorkerID("worker-2"), weir.WorkerID("server-1")
	servers, workers, all := []string{"server"}, []string{"worker", "worker-1"}, []string{"server", "worker", "worker-1"}
	shared := []string{"worker"} // the user that can be any worker
	return []Spoken{
		{"data", s.data(job, attempt, ch), workers, workers},
		{"dataTo", s.dataTo(job, attempt, ch.To), nil, workers},
		{"acks", s.acks(job, attempt, ch), workers, workers},
		{"acksTo", s.acksTo(job, attempt, ch.From), nil, workers},

		{"command", s.command(one, "deploy"), servers, workers},
		{"command", s.command(one, "read"), all, workers},
		{"command", s.command(one, "*"), nil, workers},
		{"command", s.command(one.Life("x"), "deploy"), servers, workers},
		{"command", s.command(one.Life("x"), "read"), servers, workers},
		{"command", s.command(one.Life("x"), "*"), nil, workers},
		{"command", s.command(other, "deploy"), servers, shared},
		{"command", s.command(other, "read"), all, shared},
		{"command", s.command(other, "*"), nil, shared},
		{"command", s.command(other.Life("x"), "read"), servers, shared},
		{"command", s.command(other.Life("x"), "*"), nil, shared},
		{"command", s.command(srv, "trigger"), servers, servers},
		{"command", s.command(srv, "*"), nil, servers},
		{"command", s.command(srv.Life("x"), "trigger"), nil, servers}, // servers are listened to so, and not asked
		{"command", s.command(srv.Life("x"), "*"), nil, servers},
		{"ping", s.ping(one), servers, workers},
		{"ping", s.ping(other), servers, shared},
		{"ping", s.ping(srv), nil, servers},
		{"report", s.report(), workers, servers},
		{"heartbeat", s.heartbeat(), workers, servers},

		{"inbox", s.inbox(one, "x") + ">", nil, workers},
		{"inbox", s.inbox(other, "x") + ">", nil, shared},
		{"inbox", s.inbox("", "x") + ">", nil, servers},
		{"from", s.inbox(one, "x") + s.from(one.Life("y")) + ".1", workers, workers},
		{"from", s.inbox(one, "x") + s.from(other) + ".1", shared, workers},
		{"from", s.inbox(one, "x") + s.from("") + ".1", servers, workers},
		{"from", s.inbox(other, "x") + s.from(one) + ".1", workers, shared},
		{"from", s.inbox(other, "x") + s.from("") + ".1", servers, shared},
		{"from", s.inbox("", "x") + s.from(one) + ".1", workers, servers},
		{"from", s.inbox("", "x") + s.from(other) + ".1", shared, servers},
		{"from", s.inbox("", "x") + s.from(srv) + ".1", servers, servers},
	}
}
