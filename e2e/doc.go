// Package e2e tests weir as its users have it: the real binary in real processes,
// real NATS and PostgreSQL, kill -9, real files, a real browser, machines whose links
// fail (network namespaces: as root). An oracle computed from the input alone says what
// is right. The tests need bin/weir (make build) and bin/weir-killpoints (make killpoints).
package e2e
