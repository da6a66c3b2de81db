// Package server is Weir's HTTP API: it decodes, calls, encodes. It holds nothing: any
// number of servers may serve the same cluster.
//
//	request ─▶ guard (Host, Origin) ─▶ route ─▶ handler ─▶ job.Service, metastore, planner
//	                                             │ error
//	                                             ▼
//	                                   problem+json (errors.go)
//
// /metrics (metrics.go) is for Prometheus: each answer is collected anew, by asking the
// workers and the metastore; docs/metrics.md lists the metrics.
//
// server.go has the whole route table. Each other file has a resource: its requests
// and responses as Go structs, whose JSON form is the API's, and its handlers, whose
// comments are the OpenAPI document's text (package openapi, go run ./openapi/gen).
//
// Invariants
//
//  1. A request that is not understood to the last field changes nothing: unknown
//     and repeated fields and query parameters, trailing data and wrong types are
//     refused by name.
//  2. GET never changes state; HEAD is GET without the body.
//  3. Every error is application/problem+json; none shows a stack or another's secret.
//     Only a browser that errs outside of the API is answered with a page, as 404.
//  4. A script is planned before its job exists: what SQL refuses leaves no row behind.
//  5. Requests that a foreign page could have sent, or that came by a foreign name of
//     this host, are refused.
//  6. A script for the catalog is carried out as a whole or not at all, and leaves no
//     view without what it reads (overlay.go).
//
// Goroutines: the listener's and its shutdown's, owned by Run; net/http's, one per
// request. Event streams poll in their request's goroutine and end with Run.
//
// Failures: the metastore or the workers not reachable is 503 with Retry-After.
//
// Testing: every request and response of the tests passes the document's validator.
package server
