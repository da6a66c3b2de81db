// Command weir runs SQL over streams that never loses count.
//
//	weir up        everything on this machine: server, embedded NATS and SQLite, worker processes
//	weir server    a control plane of a cluster
//	weir worker    a worker process
//	weir run       submit a query and follow its result
//	weir sql       run a script on the catalog
//	weir job, checkpoint, savepoint, table, worker, migrate, version
//
// main.go wires the commands; up.go, server.go and worker.go build processes from
// the packages, each an errgroup of blocking Run methods; client_*.go are the
// verbs that speak to a server over HTTP. Only this package knows all others.
//
// Exit codes: 0 done, 1 failed, 2 usage. Every flag may be given as WEIR_NAME in
// the environment too.
package main
