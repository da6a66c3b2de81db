// Package transporttest is test support for transport: a conformance suite for
// channels, run on local ones and on NATS; traffic of all kinds and sizes of frames, both
// ways at once, that checks what arrives; clusters of NATS servers; authorities that sign
// certificates; and a TCP proxy that cuts, refuses, delays, throttles and swallows, each
// way by itself.
//
//	sender ◀──▶ Proxy ◀──▶ nats-server ◀──▶ Proxy ◀──▶ receiver
//
// What has to happen is waited for, with a bound; what must not happen is tried with a
// context that ends soon. Proxies and clusters end with their test; networks are the
// caller's.
package transporttest
