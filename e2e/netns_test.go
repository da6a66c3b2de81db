//go:build e2e

package e2e

import (
	"testing"
	"time"
)

// startApart starts an outage on machines of their own, each with one link: the NATS
// server, the server, two workers and spare ones. They share a folder, and the server
// reaches its metastore, without the network.
func startApart(t *testing.T, work time.Duration, spare ...string) *outage {
	t.Helper()
	h := startHosts(t, append([]string{"nats", "server", "w1", "w2"}, spare...)...)
	return startOutage(t, h, "postgres", work, spare...)
}

// Two seconds without a link cost time and nothing else: what TCP says again a second later is
// heard before five are over, on a busy machine too. After three it may say it again just before
// they end, and then not for as long.
func TestLinkDownForShort(t *testing.T) {
	t.Parallel()
	o := startApart(t, 6*time.Second)
	o.through("w1 is cut off", 2*time.Second, func() { o.hosts.cut("w1") }, func() { o.hosts.mend("w1") })
	o.finish()
}

// Whoever hears and is not heard, or is heard and hears nothing, has not died of it. It is
// for two seconds: what TCP then says again is heard long before five are over, on a busy
// machine too.
func TestLossOneWay(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"input", "output"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			o := startApart(t, 6*time.Second)
			o.through("w1 loses its "+way, 2*time.Second, func() { o.hosts.lose("w1", way, "") }, func() { o.hosts.keep("w1") })
			o.finish()
		})
	}
}

// A worker that is cut off for longer than anybody waits for it is replaced; on its
// return it drops what it still runs of the attempt that is over.
func TestLinkDownForLong(t *testing.T) {
	t.Parallel()
	o := startApart(t, 6*time.Second, "w3")
	attempt := o.job().Attempt
	o.hosts.cut("w1")
	cut := time.Now()
	next := o.awaitNext(attempt, 20*time.Second)
	pass(time.Until(cut.Add(8 * time.Second)))
	o.hosts.mend("w1")
	took := until(t, 20*time.Second, "w1 has dropped the attempt that is over", func() bool { return o.a.tasksOf("w1") == 0 })
	t.Logf("w1 has dropped its attempt after %d ms", took.Milliseconds())
	if j := o.finish(); j.Attempt != next.Attempt {
		t.Errorf("attempt %d has finished, want %d: w1's return is nobody's concern", j.Attempt, next.Attempt)
	}
}

// Where no other worker has room, the job waits for the one that is cut off.
func TestLinkDownForLongWithoutSpare(t *testing.T) {
	if !long() {
		return
	}
	t.Parallel()
	o := startApart(t, 6*time.Second)
	attempt := o.job().Attempt
	o.hosts.cut("w1")
	pass(10 * time.Second)
	o.hosts.mend("w1")
	o.awaitNext(attempt, 20*time.Second)
	o.finish()
}

// Nobody hears anybody while NATS is cut off, and nobody dies of it.
func TestNATSCutOff(t *testing.T) {
	if !long() {
		return
	}
	t.Parallel()
	o := startApart(t, 24*time.Second)
	for _, lasts := range []time.Duration{4 * time.Second, 12 * time.Second} {
		o.through("NATS is cut off", lasts, func() { o.hosts.cut("nats") }, func() { o.hosts.mend("nats") })
	}
	o.finish()
}

// A server that hears no worker takes itself for the one that is cut off.
func TestServerCutOff(t *testing.T) {
	if !long() {
		return
	}
	t.Parallel()
	o := startApart(t, 24*time.Second)
	for _, lasts := range []time.Duration{4 * time.Second, 12 * time.Second} {
		o.through("the server is cut off", lasts, func() { o.hosts.cut("server") }, func() { o.hosts.mend("server") })
	}
	o.finish()
}

// A link that loses one packet of ten, both ways, for the job's whole life.
func TestLossyLink(t *testing.T) {
	if !long() {
		return
	}
	t.Parallel()
	o := startApart(t, 10*time.Second)
	attempt := o.job().Attempt
	for _, way := range []string{"input", "output"} {
		o.hosts.lose("w2", way, "numgen random mod 100 < 10")
	}
	o.awaitFlow()
	o.same(attempt, "w2 loses packets")
	o.finish()
}
