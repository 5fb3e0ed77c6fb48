// Package api is the JSON API for managing a queue: it lists what is in the queue, and has
// verbs that change it. openapi.yaml describes it, and a test compares that with the
// handlers. doc/api.md shows how it is used.
//
//	h := api.New(broker, api.Options{Server: srv, ...})
//	mux.Handle("/api/v1/", h)
//
// # A request
//
// operations.go is the table, one row for each operation: its path, the right that it
// needs and on what, and its function. Serve (api.go) identifies the client, checks the
// right, and calls the function. Within that, request.turn is the only way to the
// engine. A long operation, such as a list or a move of a million jobs, takes many turns
// with a bounded amount of work each, so that it does not delay clients. If the broker is
// given another engine in between, it ends with an error (visit.go).
//
// # Errors
//
// Every error is a problem (RFC 9457, problem.go) with a text that says what was wrong
// and what to do.
//
// # Changes
//
// Each operation that changes something writes one line to the log (audit.go), with the
// identity, the address, the operation, its object, the number of jobs, and the result. The
// line never has a body or a token.
//
// # Browsers
//
// Operations that change something are refused if a browser sends them for a page of
// another origin. On loopback, package admin refuses requests for any host name that is
// not one of this machine.
package api
