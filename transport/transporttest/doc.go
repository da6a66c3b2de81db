// Package transporttest is test support for transport: a conformance suite for
// channels, run on local ones and on NATS; clusters of NATS servers; authorities that
// sign certificates; and a TCP proxy that cuts, refuses and stalls connections.
//
//	sender ──▶ Proxy ──▶ nats-server ──▶ Proxy ──▶ receiver
//
// Nothing here sleeps: what has to happen is waited for, with a bound; what must not
// happen is tried with a context that ends soon. Everything is closed by t.Cleanup.
package transporttest
