// Package e2e tests weir as its users have it: the real binary in real processes,
// real NATS and PostgreSQL, kill -9, real files, a real browser. An oracle computed
// from the input alone says what is right. The tests need bin/weir (make build).
package e2e
